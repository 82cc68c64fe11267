// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * devlink parameters: the geometry of the device's caches, the memory pool,
 * unsolicited ACKs, the thresholds of queues, the reserved L_Key, whether there
 * is RDMA at all.
 *
 * The device takes a geometry with INIT_HCA and keeps it until the next reset,
 * so these are driverinit parameters: a value that is set takes effect with the
 * next reload.  Every other start of the device uses the values of the last
 * reload (&struct qhca_core.cache).  The driver refuses a value that the device
 * would refuse when it is set, so that the user sees the error.
 *
 * All functions of an adapter share its caches.  Virtual functions have no
 * parameters for these, and while there are such functions the geometry cannot
 * change.  A value that was set before they were enabled makes the reload fail.
 * The driver sees such values only after it has stopped the function.
 */
#include <linux/log2.h>
#include <linux/sizes.h>

#define QHCA_COMPAT_DEVLINK
#include <linux/qhca/compat.h>

#include "core.h"

#define QHCA_PARAM_FIRST	(DEVLINK_PARAM_GENERIC_ID_MAX + 1)
#define QHCA_PARAM_SETS(cache)	(QHCA_PARAM_FIRST + 2 * (cache))
#define QHCA_PARAM_BLOCKS(cache) (QHCA_PARAM_SETS(cache) + 1)
#define QHCA_PARAM_POOL_BLOCKS	QHCA_PARAM_SETS(QHCA_NUM_CACHES)
#define QHCA_PARAM_POOL_KIB	(QHCA_PARAM_POOL_BLOCKS + 1)
#define QHCA_PARAM_UNSOL_ACKS	(QHCA_PARAM_POOL_KIB + 1)
#define QHCA_PARAM_THRESHOLD(queue) (QHCA_PARAM_UNSOL_ACKS + 1 + (queue))
#define QHCA_PARAM_STRICT_LKEY	QHCA_PARAM_THRESHOLD(QHCA_NUM_THRESHOLDS)

/* Limits of a block of the pool, in KiB. */
#define QHCA_POOL_MIN_KIB	64
#define QHCA_POOL_MAX_KIB	(SZ_1G / SZ_1K)

static int qhca_geometry_fixed(struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG(extack,
		       "the caches' geometry cannot change while there are virtual functions");
	return -EBUSY;
}

static int qhca_geometry_validate(struct devlink *devlink, u32 id,
				  QHCA_PARAM_VALUE value,
				  struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_priv(devlink);
	u32 cache = (id - QHCA_PARAM_FIRST) / 2;
	bool sets = id == QHCA_PARAM_SETS(cache);
	u16 number = QHCA_PARAM_U16(value);
	u16 most, now;

	most = sets ? core->cache_max[cache].sets :
		      core->cache_max[cache].blocks;
	now = sets ? core->cache[cache].sets : core->cache[cache].blocks;
	if (!is_power_of_2(number)) {
		NL_SET_ERR_MSG_FMT(extack, "%u is not a power of two", number);
		return -EINVAL;
	}
	if (number > most) {
		NL_SET_ERR_MSG_FMT(extack,
				   "%u is over the device's maximum, %u",
				   number, most);
		return -EINVAL;
	}
	if (number != now && pci_num_vf(core->qdev.pdev))
		return qhca_geometry_fixed(extack);
	return 0;
}

static int qhca_pool_blocks_validate(struct devlink *devlink, u32 id,
				     QHCA_PARAM_VALUE value,
				     struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_priv(devlink);
	u32 most = core->qdev.caps.max_pool_blocks;

	if (QHCA_PARAM_U32(value) > most) {
		NL_SET_ERR_MSG_FMT(extack,
				   "%u is over the device's maximum, %u",
				   QHCA_PARAM_U32(value), most);
		return -EINVAL;
	}
	return 0;
}

static int qhca_pool_kib_validate(struct devlink *devlink, u32 id,
				  QHCA_PARAM_VALUE value,
				  struct netlink_ext_ack *extack)
{
	u32 kib = QHCA_PARAM_U32(value);

	if (!is_power_of_2(kib) || kib < QHCA_POOL_MIN_KIB ||
	    kib > QHCA_POOL_MAX_KIB) {
		NL_SET_ERR_MSG_FMT(extack,
				   "%u is not a power of two from %u to %u",
				   kib, QHCA_POOL_MIN_KIB, QHCA_POOL_MAX_KIB);
		return -EINVAL;
	}
	return 0;
}

static int qhca_threshold_validate(struct devlink *devlink, u32 id,
				   QHCA_PARAM_VALUE value,
				   struct netlink_ext_ack *extack)
{
	u16 percent = QHCA_PARAM_U16(value);

	if (percent > 100) {
		NL_SET_ERR_MSG_FMT(extack, "%u is over 100 percent", percent);
		return -EINVAL;
	}
	return 0;
}

static int qhca_strict_lkey_validate(struct devlink *devlink, u32 id,
				     QHCA_PARAM_VALUE value,
				     struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_priv(devlink);

	if (QHCA_PARAM_BOOL(value) &&
	    !(core->qdev.caps.features & QHCA_FEAT_STRICT_LKEY)) {
		NL_SET_ERR_MSG(extack,
			       "the device has no strict mode of the reserved L_Key");
		return -EOPNOTSUPP;
	}
	return 0;
}

#define QHCA_PARAM_PERCENT(_id, _name)					\
	DEVLINK_PARAM_DRIVER(_id, _name, DEVLINK_PARAM_TYPE_U16,	\
			     BIT(DEVLINK_PARAM_CMODE_DRIVERINIT),	\
			     NULL, NULL, qhca_threshold_validate)

#define QHCA_PARAM(_id, _name)						\
	DEVLINK_PARAM_DRIVER(_id, _name, DEVLINK_PARAM_TYPE_U16,	\
			     BIT(DEVLINK_PARAM_CMODE_DRIVERINIT),	\
			     NULL, NULL, qhca_geometry_validate)

/* Of the physical function alone, as the functions share the caches. */
static const struct devlink_param qhca_geometry_params[] = {
	QHCA_PARAM(QHCA_PARAM_SETS(QHCA_CACHE_PT), "pt_cache_sets"),
	QHCA_PARAM(QHCA_PARAM_BLOCKS(QHCA_CACHE_PT), "pt_cache_blocks"),
	QHCA_PARAM(QHCA_PARAM_SETS(QHCA_CACHE_AT), "at_cache_sets"),
	QHCA_PARAM(QHCA_PARAM_BLOCKS(QHCA_CACHE_AT), "at_cache_blocks"),
	QHCA_PARAM(QHCA_PARAM_SETS(QHCA_CACHE_QD), "qp_cache_sets"),
	QHCA_PARAM(QHCA_PARAM_BLOCKS(QHCA_CACHE_QD), "qp_cache_blocks"),
	QHCA_PARAM(QHCA_PARAM_SETS(QHCA_CACHE_CQ), "cq_cache_sets"),
	QHCA_PARAM(QHCA_PARAM_BLOCKS(QHCA_CACHE_CQ), "cq_cache_blocks"),
	QHCA_PARAM(QHCA_PARAM_SETS(QHCA_CACHE_SRQ), "srq_cache_sets"),
	QHCA_PARAM(QHCA_PARAM_BLOCKS(QHCA_CACHE_SRQ), "srq_cache_blocks"),
};

static const struct devlink_param qhca_params[] = {
	DEVLINK_PARAM_DRIVER(QHCA_PARAM_POOL_BLOCKS, "pool_blocks",
			     DEVLINK_PARAM_TYPE_U32,
			     BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL,
			     qhca_pool_blocks_validate),
	DEVLINK_PARAM_DRIVER(QHCA_PARAM_POOL_KIB, "pool_block_kib",
			     DEVLINK_PARAM_TYPE_U32,
			     BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL,
			     qhca_pool_kib_validate),
	DEVLINK_PARAM_DRIVER(QHCA_PARAM_UNSOL_ACKS, "unsolicited_acks",
			     DEVLINK_PARAM_TYPE_BOOL,
			     BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL,
			     NULL),
	QHCA_PARAM_PERCENT(QHCA_PARAM_THRESHOLD(QHCA_THRESHOLD_CQ),
			   "cq_threshold_percent"),
	QHCA_PARAM_PERCENT(QHCA_PARAM_THRESHOLD(QHCA_THRESHOLD_RQ),
			   "rq_threshold_percent"),
	QHCA_PARAM_PERCENT(QHCA_PARAM_THRESHOLD(QHCA_THRESHOLD_SRQ),
			   "srq_threshold_percent"),
	DEVLINK_PARAM_DRIVER(QHCA_PARAM_STRICT_LKEY, "strict_lkey",
			     DEVLINK_PARAM_TYPE_BOOL,
			     BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL,
			     qhca_strict_lkey_validate),
	DEVLINK_PARAM_GENERIC(ENABLE_RDMA, BIT(DEVLINK_PARAM_CMODE_DRIVERINIT),
			      NULL, NULL, NULL),
};

static void qhca_param_init(struct devlink *devlink, u32 id, u16 number)
{
	union devlink_param_value value = { .vu16 = number };

	devl_param_driverinit_value_set(devlink, id, QHCA_PARAM_PASS(value));
}

static int qhca_geometry_register(struct qhca_core *core)
{
	struct devlink *devlink = priv_to_devlink(core);
	int i, err;

	if (qhca_is_vf(core))
		return 0;
	err = devl_params_register(devlink, qhca_geometry_params,
				   ARRAY_SIZE(qhca_geometry_params));
	if (err)
		return err;
	for (i = 0; i < QHCA_NUM_CACHES; i++) {
		qhca_param_init(devlink, QHCA_PARAM_SETS(i),
				core->cache[i].sets);
		qhca_param_init(devlink, QHCA_PARAM_BLOCKS(i),
				core->cache[i].blocks);
	}
	return 0;
}

static void qhca_geometry_unregister(struct qhca_core *core)
{
	if (!qhca_is_vf(core))
		devl_params_unregister(priv_to_devlink(core),
				       qhca_geometry_params,
				       ARRAY_SIZE(qhca_geometry_params));
}

/**
 * qhca_params_register - offer the parameters, with the values in use
 * @core: function, started, so that the device's limits are known
 *
 * Context: process, devlink instance lock held.
 * Return: 0 or a negative errno.
 */
int qhca_params_register(struct qhca_core *core)
{
	struct devlink *devlink = priv_to_devlink(core);
	union devlink_param_value value;
	int i, err;

	err = devl_params_register(devlink, qhca_params,
				   ARRAY_SIZE(qhca_params));
	if (err)
		return err;
	err = qhca_geometry_register(core);
	if (err) {
		devl_params_unregister(devlink, qhca_params,
				       ARRAY_SIZE(qhca_params));
		return err;
	}
	value.vu32 = core->qdev.pool_blocks;
	devl_param_driverinit_value_set(devlink, QHCA_PARAM_POOL_BLOCKS,
					QHCA_PARAM_PASS(value));
	value.vu32 = core->qdev.pool_block_size >> 10;
	devl_param_driverinit_value_set(devlink, QHCA_PARAM_POOL_KIB,
					QHCA_PARAM_PASS(value));
	value.vbool = core->unsolicited_acks;
	devl_param_driverinit_value_set(devlink, QHCA_PARAM_UNSOL_ACKS,
					QHCA_PARAM_PASS(value));
	value.vbool = core->qdev.strict_lkey;
	devl_param_driverinit_value_set(devlink, QHCA_PARAM_STRICT_LKEY,
					QHCA_PARAM_PASS(value));
	value.vbool = core->rdma_enabled;
	devl_param_driverinit_value_set(devlink,
					DEVLINK_PARAM_GENERIC_ID_ENABLE_RDMA,
					QHCA_PARAM_PASS(value));
	for (i = 0; i < QHCA_NUM_THRESHOLDS; i++)
		qhca_param_init(devlink, QHCA_PARAM_THRESHOLD(i),
				core->qdev.threshold_percent[i]);
	return 0;
}

/* Context: process, devlink instance lock held. */
void qhca_params_unregister(struct qhca_core *core)
{
	qhca_geometry_unregister(core);
	devl_params_unregister(priv_to_devlink(core), qhca_params,
			       ARRAY_SIZE(qhca_params));
}

/*
 * Each of these has a value of its own, since the stack should not hold several:
 * newer kernels have arrays in them.
 */
static noinline_for_stack int qhca_param_u16(struct devlink *devlink, u32 id,
					     u16 *number)
{
	union devlink_param_value value;
	int err = devl_param_driverinit_value_get(devlink, id, &value);

	if (!err)
		*number = value.vu16;
	return err;
}

static noinline_for_stack int qhca_param_u32(struct devlink *devlink, u32 id,
					     u32 *number)
{
	union devlink_param_value value;
	int err = devl_param_driverinit_value_get(devlink, id, &value);

	if (!err)
		*number = value.vu32;
	return err;
}

static noinline_for_stack int qhca_param_bool(struct devlink *devlink, u32 id,
					      bool *on)
{
	union devlink_param_value value;
	int err = devl_param_driverinit_value_get(devlink, id, &value);

	if (!err)
		*on = value.vbool;
	return err;
}

static int qhca_geometry_load(struct qhca_core *core,
			      struct qhca_cache_size cache[QHCA_NUM_CACHES])
{
	struct devlink *devlink = priv_to_devlink(core);
	int i, err;

	memcpy(cache, core->cache, sizeof(core->cache));
	if (qhca_is_vf(core))
		return 0;
	for (i = 0; i < QHCA_NUM_CACHES; i++) {
		err = qhca_param_u16(devlink, QHCA_PARAM_SETS(i),
				     &cache[i].sets) ?:
		      qhca_param_u16(devlink, QHCA_PARAM_BLOCKS(i),
				     &cache[i].blocks);
		if (err)
			return err;
	}
	return 0;
}

/**
 * qhca_params_load - take over what has been set, for the next start
 * @core:   function, stopped
 * @extack: for the reason of an error
 *
 * Context: process, devlink instance lock held, in a reload.
 * Return: 0 or a negative errno; then nothing has changed.
 */
int qhca_params_load(struct qhca_core *core, struct netlink_ext_ack *extack)
{
	struct devlink *devlink = priv_to_devlink(core);
	struct qhca_cache_size cache[QHCA_NUM_CACHES];
	u16 percent[QHCA_NUM_THRESHOLDS];
	bool acks, strict, rdma;
	u32 blocks, kib;
	int i, err;

	err = qhca_geometry_load(core, cache);
	if (err)
		return err;
	if (pci_num_vf(core->qdev.pdev) &&
	    memcmp(cache, core->cache, sizeof(cache)))
		return qhca_geometry_fixed(extack);
	for (i = 0; i < QHCA_NUM_THRESHOLDS; i++) {
		err = qhca_param_u16(devlink, QHCA_PARAM_THRESHOLD(i),
				     &percent[i]);
		if (err)
			return err;
	}
	err = qhca_param_u32(devlink, QHCA_PARAM_POOL_BLOCKS, &blocks) ?:
	      qhca_param_u32(devlink, QHCA_PARAM_POOL_KIB, &kib) ?:
	      qhca_param_bool(devlink, QHCA_PARAM_UNSOL_ACKS, &acks) ?:
	      qhca_param_bool(devlink, QHCA_PARAM_STRICT_LKEY, &strict) ?:
	      qhca_param_bool(devlink, DEVLINK_PARAM_GENERIC_ID_ENABLE_RDMA,
			      &rdma);
	if (err)
		return err;

	memcpy(core->cache, cache, sizeof(cache));
	memcpy(core->qdev.threshold_percent, percent, sizeof(percent));
	core->qdev.pool_blocks = blocks;
	core->qdev.pool_block_size = (u64)kib << 10;
	core->qdev.strict_lkey = strict;
	core->unsolicited_acks = acks;
	core->rdma_enabled = rdma;
	return 0;
}
