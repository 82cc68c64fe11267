// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The auxiliary device that the RDMA driver binds to.
 */
#include <linux/idr.h>
#include <linux/slab.h>

#include "core.h"

static DEFINE_IDA(qhca_aux_ida);

static void qhca_aux_release(struct device *dev)
{
	struct auxiliary_device *adev = to_auxiliary_dev(dev);

	ida_free(&qhca_aux_ida, adev->id);
	kfree(container_of(adev, struct qhca_aux_dev, adev));
}

int qhca_aux_add(struct qhca_core *core)
{
	struct qhca_aux_dev *aux;
	int id, err;

	aux = kzalloc(sizeof(*aux), GFP_KERNEL);
	if (!aux)
		return -ENOMEM;
	id = ida_alloc(&qhca_aux_ida, GFP_KERNEL);
	if (id < 0) {
		kfree(aux);
		return id;
	}
	aux->qdev = &core->qdev;
	aux->adev.name = QHCA_AUX_RDMA;
	aux->adev.id = id;
	aux->adev.dev.parent = qhca_device(core);
	aux->adev.dev.release = qhca_aux_release;
	err = auxiliary_device_init(&aux->adev);
	if (err) {
		ida_free(&qhca_aux_ida, id);
		kfree(aux);
		return err;
	}
	err = auxiliary_device_add(&aux->adev);
	if (err) {
		auxiliary_device_uninit(&aux->adev);
		return err;
	}
	core->rdma = aux;
	return 0;
}

void qhca_aux_remove(struct qhca_core *core)
{
	struct qhca_aux_dev *aux = core->rdma;

	core->rdma = NULL;
	auxiliary_device_delete(&aux->adev);
	auxiliary_device_uninit(&aux->adev);
}
