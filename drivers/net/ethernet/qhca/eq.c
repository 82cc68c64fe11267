// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event queues.
 *
 * Each queue has an MSI-X vector of its own, unless the function has too few.
 * The interrupt handler consumes the entries, stores its index in the record,
 * and arms the queue again.  The doorbell carries the same index, so that the
 * device interrupts at once if it has written more entries in the meantime.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "core.h"
#include "netdev.h"

/* The index is stored after so many entries, so that the device has room. */
#define QHCA_EQ_RECORD_EVERY	64

/**
 * struct qhca_eq - an event queue
 * @core:    the function
 * @ring:    entries, followed by the record
 * @rec:     the record
 * @dma:     bus address of @ring
 * @bytes:   length of @ring and @rec
 * @handler: called for each entry in hard interrupts
 * @ctx:     argument of @handler
 * @number:  EQN
 * @irq:     Linux interrupt number
 * @ci:      free-running number of entries consumed
 * @log_depth: log2 of the entries of the ring
 * @name:    name of the interrupt
 */
struct qhca_eq {
	struct qhca_core *core;
	struct qhca_eqe *ring;
	struct qhca_eq_record *rec;
	dma_addr_t dma;
	size_t bytes;
	qhca_eq_handler handler;
	void *ctx;
	u32 number;
	int irq;
	u32 ci;
	u8 log_depth;
	char name[48];
};

static void qhca_eq_arm(struct qhca_eq *eq)
{
	qhca_ring(&eq->core->qdev, QHCA_DB_EQ_ARM,
		  eq->number | (u64)eq->ci << 32);
}

static const struct qhca_eqe *qhca_eq_next(struct qhca_eq *eq)
{
	u32 mask = (1u << eq->log_depth) - 1;
	const struct qhca_eqe *eqe = &eq->ring[eq->ci & mask];
	u32 wanted = (eq->ci >> eq->log_depth) & 1 ? 0 : QHCA_PHASE;

	if ((le32_to_cpu(READ_ONCE(eqe->phase)) & QHCA_PHASE) != wanted)
		return NULL;
	/* The device writes the phase last, so the rest is read after it. */
	dma_rmb();
	return eqe;
}

static irqreturn_t qhca_eq_irq(int irq, void *data)
{
	struct qhca_eq *eq = data;
	const struct qhca_eqe *eqe;
	u32 budget = 1u << eq->log_depth;

	/* The loop is bounded: if there is more, arming causes an interrupt. */
	while (budget-- && (eqe = qhca_eq_next(eq))) {
		/*
		 * The device can write there at any time, so handlers get a
		 * copy.
		 */
		struct qhca_eqe copy = *eqe;

		eq->handler(eq->ctx, &copy);
		eq->ci++;
		if (!(eq->ci % QHCA_EQ_RECORD_EVERY))
			WRITE_ONCE(eq->rec->ci, cpu_to_le32(eq->ci));
	}
	WRITE_ONCE(eq->rec->ci, cpu_to_le32(eq->ci));
	qhca_eq_arm(eq);
	return IRQ_HANDLED;
}

static int qhca_eq_create_hw(struct qhca_eq *eq, int vector)
{
	struct qhca_eqc_sw sw = {
		.buf = {
			.base = cpu_to_le64(eq->dma),
			.length = cpu_to_le32(eq->bytes),
			.page_shift = PAGE_SHIFT,
		},
		.rec_offset = cpu_to_le32(eq->bytes - sizeof(*eq->rec)),
		.log_depth = eq->log_depth,
		.vector = cpu_to_le16(vector),
	};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_CREATE_EQ,
		.index = eq->number,
		.in = &sw,
		.in_len = sizeof(sw),
	};

	return qhca_core_exec(eq->core, &cmd);
}

static struct qhca_eq *qhca_eq_make(struct qhca_core *core, u32 number,
				    int vector, u32 log_depth,
				    qhca_eq_handler handler, void *ctx)
{
	struct pci_dev *pdev = core->qdev.pdev;
	struct qhca_eq *eq;
	int err;

	/* With one entry the record would not be aligned. */
	if (!log_depth || log_depth > core->qdev.caps.log_max_eq_depth)
		return ERR_PTR(-EINVAL);
	eq = kzalloc(sizeof(*eq), GFP_KERNEL);
	if (!eq)
		return ERR_PTR(-ENOMEM);
	eq->core = core;
	eq->handler = handler;
	eq->ctx = ctx;
	eq->number = number;
	eq->log_depth = log_depth;
	eq->bytes = (sizeof(*eq->ring) << log_depth) + sizeof(*eq->rec);
	eq->ring = dma_alloc_coherent(&pdev->dev, eq->bytes, &eq->dma,
				      GFP_KERNEL);
	if (!eq->ring) {
		err = -ENOMEM;
		goto free_eq;
	}
	eq->rec = (void *)(eq->ring + (1u << log_depth));
	if (vector == QHCA_VECTOR_ASYNC)
		snprintf(eq->name, sizeof(eq->name), "%s-async@%s",
			 QHCA_DRV_NAME, pci_name(pdev));
	else
		snprintf(eq->name, sizeof(eq->name), "%s-comp%d@%s",
			 QHCA_DRV_NAME, vector - qhca_comp_base(core),
			 pci_name(pdev));
	vector = qhca_vector(core, vector);
	eq->irq = pci_irq_vector(pdev, vector);
	err = request_irq(eq->irq, qhca_eq_irq, qhca_irq_flags(core), eq->name,
			  eq);
	if (err)
		goto free_ring;
	err = qhca_eq_create_hw(eq, vector);
	if (err)
		goto free_irq;
	qhca_eq_arm(eq);
	return eq;

free_irq:
	free_irq(eq->irq, eq);
free_ring:
	dma_free_coherent(&pdev->dev, eq->bytes, eq->ring, eq->dma);
free_eq:
	kfree(eq);
	return ERR_PTR(err);
}

static void qhca_eq_unmake(struct qhca_eq *eq)
{
	struct qhca_core *core = eq->core;
	int err;

	err = qhca_core_simple(core, QHCA_CMD_DESTROY_EQ, eq->number, 0);
	/* A device that keeps the queue would write to freed memory. */
	if (err && err != -EIO)
		qhca_die(core, "event queue not destroyed");
	free_irq(eq->irq, eq);
	dma_free_coherent(qhca_device(core), eq->bytes, eq->ring, eq->dma);
	kfree(eq);
}

struct qhca_eq *qhca_eq_create(struct qhca_dev *qdev, int comp_vector,
			       u32 log_depth, qhca_eq_handler handler,
			       void *ctx)
{
	struct qhca_core *core = qhca_core_of(qdev);
	struct qhca_eq *eq;
	u32 number;
	int err;

	if (comp_vector < 0 || comp_vector >= qdev->num_comp_vectors)
		return ERR_PTR(-EINVAL);
	err = qhca_index_alloc(qdev, QHCA_TABLE_EQ, &number);
	if (err)
		return ERR_PTR(err);
	eq = qhca_eq_make(core, number, qhca_comp_base(core) + comp_vector,
			  log_depth, handler, ctx);
	if (IS_ERR(eq)) {
		qhca_index_free(qdev, QHCA_TABLE_EQ, number);
		return eq;
	}
	/* Whoever frees a shared interrupt must not find a hint. */
	if (!(qhca_irq_flags(core) & IRQF_SHARED))
		irq_set_affinity_and_hint(eq->irq,
					  cpumask_of(cpumask_local_spread(comp_vector,
									  dev_to_node(&qdev->pdev->dev))));
	return eq;
}
EXPORT_SYMBOL_GPL(qhca_eq_create);

void qhca_eq_destroy(struct qhca_eq *eq)
{
	struct qhca_dev *qdev = &eq->core->qdev;
	u32 number = eq->number;

	irq_update_affinity_hint(eq->irq, NULL);
	qhca_eq_unmake(eq);
	qhca_index_free(qdev, QHCA_TABLE_EQ, number);
}
EXPORT_SYMBOL_GPL(qhca_eq_destroy);

u32 qhca_eq_number(const struct qhca_eq *eq)
{
	return eq->number;
}
EXPORT_SYMBOL_GPL(qhca_eq_number);

void qhca_eq_synchronize(struct qhca_eq *eq)
{
	synchronize_irq(eq->irq);
}
EXPORT_SYMBOL_GPL(qhca_eq_synchronize);

static void qhca_async_event(void *ctx, const struct qhca_eqe *eqe)
{
	struct qhca_core *core = ctx;

	switch (eqe->type) {
	case QHCA_EVENT_CMD:
		qhca_cmdq_event(core, eqe);
		break;
	case QHCA_EVENT_STAGE2_FAULT:
		qhca_stage2_event(core, eqe);
		break;
	case QHCA_EVENT_DEVICE_FATAL:
		/* This notifies the listeners, too. */
		qhca_die(core, "fatal event");
		break;
	case QHCA_EVENT_PORT_CHANGE:
		qhca_netdev_link_event(core);
		fallthrough;
	default:
		atomic_notifier_call_chain(&core->notifier, eqe->type,
					   (void *)eqe);
	}
}

int qhca_async_eq_create(struct qhca_core *core)
{
	u32 log_depth = min_t(u32, QHCA_ASYNC_LOG_DEPTH,
			      core->qdev.caps.log_max_eq_depth);
	struct qhca_eq *eq;
	int err;

	err = qhca_index_take(&core->qdev, QHCA_TABLE_EQ, QHCA_EQN_ASYNC);
	if (err)
		return err;
	eq = qhca_eq_make(core, QHCA_EQN_ASYNC, QHCA_VECTOR_ASYNC, log_depth,
			  qhca_async_event, core);
	if (IS_ERR(eq)) {
		qhca_index_free(&core->qdev, QHCA_TABLE_EQ, QHCA_EQN_ASYNC);
		return PTR_ERR(eq);
	}
	core->async_eq = eq;
	return 0;
}

void qhca_async_eq_destroy(struct qhca_core *core)
{
	qhca_eq_unmake(core->async_eq);
	core->async_eq = NULL;
	qhca_index_free(&core->qdev, QHCA_TABLE_EQ, QHCA_EQN_ASYNC);
}

int qhca_notifier_register(struct qhca_dev *qdev, struct notifier_block *nb)
{
	return atomic_notifier_chain_register(&qhca_core_of(qdev)->notifier,
					      nb);
}
EXPORT_SYMBOL_GPL(qhca_notifier_register);

void qhca_notifier_unregister(struct qhca_dev *qdev, struct notifier_block *nb)
{
	atomic_notifier_chain_unregister(&qhca_core_of(qdev)->notifier, nb);
}
EXPORT_SYMBOL_GPL(qhca_notifier_unregister);
