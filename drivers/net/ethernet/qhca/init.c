// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Starting a function after reset, and stopping it: capabilities, tables, event
 * queue 0, and then the users of these, the netdev and the auxiliary device.
 */
#include <linux/delay.h>

#include "core.h"
#include "netdev.h"

/* Entries of each table, unless the device has fewer. */
#define QHCA_LOG_PT		20
#define QHCA_LOG_QP		17
#define QHCA_LOG_CQ		17
#define QHCA_LOG_SRQ		16
#define QHCA_LOG_EQ		6

/*
 * The driver computes shifts and sizes of memory from capabilities, so it
 * clamps them to the limits of the specification.
 */
#define QHCA_LOG_WQ_DEPTH	16
#define QHCA_LOG_CQ_DEPTH	24
#define QHCA_LOG_EQ_DEPTH	20
#define QHCA_LOG_STRIDE		12
#define QHCA_LOG_MSG_SIZE	31
#define QHCA_LOG_ETH_RING	15

static int qhca_reset(struct qhca_core *core)
{
	unsigned long deadline = jiffies + QHCA_RESET_TIMEOUT;
	u32 status;

	qhca_write(core, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
	for (;;) {
		if (!qhca_answers(core))
			return -ENODEV;
		status = qhca_read(core, QHCA_REG_STATUS);
		if (status & QHCA_STATUS_READY)
			return status & QHCA_STATUS_FATAL ? -EIO : 0;
		if (time_after(jiffies, deadline))
			return -ETIMEDOUT;
		usleep_range(100, 200);
	}
}

/*
 * When this returns the device does not access memory, in whatever state it is.
 */
void qhca_silence(struct qhca_core *core)
{
	struct pci_dev *pdev = core->qdev.pdev;

	/* A frozen PCI channel blocks accesses in both directions. */
	if (!pci_channel_offline(pdev) && qhca_is_present(core) &&
	    qhca_reset(core))
		dev_warn(qhca_device(core), "device not reset\n");
	pci_clear_master(pdev);
}

static void qhca_copy_geometry(struct qhca_core *core,
			       const struct qhca_caps *in)
{
	int i;

	for (i = 0; i < QHCA_NUM_CACHES; i++) {
		core->cache_max[i].sets = le16_to_cpu(in->cache_max[i].sets);
		core->cache_max[i].blocks =
			le16_to_cpu(in->cache_max[i].blocks);
		/* The physical function chooses for all. */
		if (qhca_is_vf(core) || core->cache[i].sets)
			continue;
		core->cache[i].sets = le16_to_cpu(in->cache_default[i].sets);
		core->cache[i].blocks =
			le16_to_cpu(in->cache_default[i].blocks);
	}
}

static void qhca_copy_caps(struct qhca_core *core, const struct qhca_caps *in)
{
	struct qhca_caps_host *caps = &core->qdev.caps;
	u32 bar_pages = pci_resource_len(core->qdev.pdev, QHCA_BAR_DOORBELLS) /
			QHCA_DB_PAGE_SIZE;

	caps->features = le64_to_cpu(in->features);
	caps->max_mr_size = le64_to_cpu(in->max_mr_size);
	caps->page_sizes = le64_to_cpu(in->page_sizes);
	caps->devmem_size = min_t(u64, le64_to_cpu(in->devmem_size),
				  pci_resource_len(core->qdev.pdev,
						   QHCA_BAR_DEVMEM));
	caps->clock_hz = le64_to_cpu(in->clock_hz);
	caps->log_pt = min_t(u32, in->log_max_pt, QHCA_LOG_PT);
	caps->log_qp = min_t(u32, in->log_max_qp, QHCA_LOG_QP);
	caps->log_cq = min_t(u32, in->log_max_cq, QHCA_LOG_CQ);
	caps->log_srq = min_t(u32, in->log_max_srq, QHCA_LOG_SRQ);
	caps->log_eq = min_t(u32, in->log_max_eq, QHCA_LOG_EQ);
	caps->log_max_wq_depth = min_t(u32, in->log_max_wq_depth,
				       QHCA_LOG_WQ_DEPTH);
	caps->log_max_cq_depth = min_t(u32, in->log_max_cq_depth,
				       QHCA_LOG_CQ_DEPTH);
	caps->log_max_eq_depth = min_t(u32, in->log_max_eq_depth,
				       QHCA_LOG_EQ_DEPTH);
	caps->log_max_wqe_stride = min_t(u32, in->log_max_wqe_stride,
					 QHCA_LOG_STRIDE);
	caps->log_max_rwqe_stride = min_t(u32, in->log_max_rwqe_stride,
					  QHCA_LOG_STRIDE);
	caps->log_max_eth_ring = min_t(u32, in->log_max_eth_ring,
				       QHCA_LOG_ETH_RING);
	caps->max_eth_queues = caps->features & QHCA_FEAT_ETH_RSS ?
			       min_t(u32, in->max_eth_queues,
				     QHCA_ETH_MAX_QUEUES) : 1;
	caps->max_mtu = in->max_mtu;
	caps->max_rd_atomic = in->max_rd_atomic;
	caps->max_sge = le16_to_cpu(in->max_sge);
	caps->max_inline = le16_to_cpu(in->max_inline);
	caps->max_gids = le16_to_cpu(in->max_gids);
	caps->max_mcast_members = le16_to_cpu(in->max_mcast_members);
	caps->max_flows = le16_to_cpu(in->max_flows);
	caps->num_counter_sets = caps->features & QHCA_FEAT_QP_COUNTERS ?
				 le16_to_cpu(in->num_counter_sets) : 0;
	caps->num_db_pages = min(le32_to_cpu(in->num_db_pages), bar_pages);
	caps->num_counters = min_t(u32, le32_to_cpu(in->num_counters),
				   QHCA_NUM_COUNTERS);
	caps->num_vectors = min_t(u32, in->num_vectors, core->num_vectors);
	caps->max_pool_blocks = le16_to_cpu(in->max_pool_blocks);
	caps->max_pool_keys = le16_to_cpu(in->max_pool_keys);
	caps->max_eth_mtu = le16_to_cpu(in->max_eth_mtu);
	caps->total_vfs = caps->features & QHCA_FEAT_VF ?
			  min_t(u32, le16_to_cpu(in->total_vfs), QHCA_MAX_VFS) :
			  0;
	caps->first_user_qpn = le32_to_cpu(in->first_user_qpn);
	caps->max_msg_size_log = min_t(u32, le32_to_cpu(in->max_msg_size_log),
				       QHCA_LOG_MSG_SIZE);
	caps->reserved_lkey = le32_to_cpu(in->reserved_lkey);
	qhca_copy_geometry(core, in);
}

/* Features that this driver requires. */
static int qhca_check_caps(struct qhca_core *core, const struct qhca_caps *in)
{
	const struct qhca_caps_host *caps = &core->qdev.caps;

	if (!caps->num_vectors || !caps->log_eq ||
	    !caps->log_max_eq_depth || !caps->num_db_pages ||
	    !in->max_eth_queues || caps->log_max_eth_ring < QHCA_ETH_MIN_LOG_RING ||
	    caps->max_eth_mtu < ETH_DATA_LEN) {
		dev_err(qhca_device(core), "the device lacks features that the driver requires\n");
		return -ENODEV;
	}
	return 0;
}

/*
 * Divide the vectors: Ethernet gets no more than completions, and neither more than there
 * are CPUs.  Each completion vector takes an event queue, whose number is not that of
 * EQ 0.  There is always one, though it may share its interrupt.
 */
static void qhca_divide_vectors(struct qhca_core *core)
{
	struct qhca_dev *qdev = &core->qdev;
	u32 num = max(qdev->caps.num_vectors, QHCA_VECTORS_APART) - 1;

	core->eth_vectors = min3(num / 2, core->num_cpus,
				 max(qdev->caps.max_eth_queues, 1));
	qdev->num_comp_vectors = min3(num - core->eth_vectors, core->num_cpus,
				      (1u << qdev->caps.log_eq) - 1);
}

static int qhca_query_caps(struct qhca_core *core)
{
	struct qhca_dev *qdev = &core->qdev;
	struct qhca_caps in;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_CAPS,
		.out = &in,
		.out_len = sizeof(in),
	};
	int err;

	err = qhca_core_exec(core, &cmd);
	if (err) {
		dev_err(qhca_device(core), "cannot query capabilities: %d\n",
			err);
		return err;
	}
	qhca_copy_caps(core, &in);
	err = qhca_check_caps(core, &in);
	if (err)
		return err;
	qhca_divide_vectors(core);
	qdev->devmem_phys = qdev->caps.devmem_size ?
			    pci_resource_start(qdev->pdev, QHCA_BAR_DEVMEM) : 0;
	return 0;
}

static int qhca_init_hca(struct qhca_core *core)
{
	struct qhca_caps_host *caps = &core->qdev.caps;
	struct qhca_ctx_table *table = core->table;
	struct qhca_init_hca init = {};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_INIT_HCA,
		.in = &init,
		.in_len = sizeof(init),
	};
	int i, err;

	qhca_table_layout(&table[QHCA_TABLE_PT], sizeof(struct qhca_pte),
			  caps->log_pt);
	qhca_table_layout(&table[QHCA_TABLE_QP], sizeof(struct qhca_qpc),
			  caps->log_qp);
	qhca_table_layout(&table[QHCA_TABLE_CQ], sizeof(struct qhca_cqc),
			  caps->log_cq);
	qhca_table_layout(&table[QHCA_TABLE_SRQ], sizeof(struct qhca_srqc),
			  caps->log_srq);
	qhca_table_layout(&table[QHCA_TABLE_EQ], sizeof(struct qhca_eqc),
			  caps->log_eq);
	for (i = 0; i < QHCA_NUM_TABLES; i++) {
		init.table[i].log_entries = table[i].log_entries;
		init.table[i].log_chunk = table[i].log_chunk;
	}
	for (i = 0; i < QHCA_NUM_CACHES; i++) {
		init.cache[i].sets = cpu_to_le16(core->cache[i].sets);
		init.cache[i].blocks = cpu_to_le16(core->cache[i].blocks);
	}
	if (!core->unsolicited_acks)
		init.flags |= cpu_to_le32(QHCA_INIT_NO_UNSOL_ACK);
	if (core->qdev.strict_lkey)
		init.flags |= cpu_to_le32(QHCA_INIT_STRICT_LKEY);
	err = qhca_core_exec(core, &cmd);
	if (err == -EBUSY && pci_num_vf(core->qdev.pdev)) {
		/*
		 * After a PCI reset a virtual function may be the first to
		 * start, and it does not know the geometry.
		 */
		dev_warn(qhca_device(core),
			 "virtual functions use the caches with the default geometry\n");
		memset(init.cache, 0, sizeof(init.cache));
		err = qhca_core_exec(core, &cmd);
	}
	if (err)
		dev_err(qhca_device(core), "cannot initialise: %d\n", err);
	return err;
}

static void qhca_numbers_free(struct qhca_core *core)
{
	int i;

	for (i = 0; i < QHCA_NUM_TABLES; i++)
		qhca_table_free(core, &core->table[i]);
	qhca_bitmap_free(&core->db_pages);
}

static int qhca_numbers_init(struct qhca_core *core)
{
	const u32 first[QHCA_NUM_TABLES] = {
		[QHCA_TABLE_PT] = QHCA_FIRST_KEY_INDEX,
		[QHCA_TABLE_QP] = core->qdev.caps.first_user_qpn,
		[QHCA_TABLE_EQ] = QHCA_EQN_ASYNC + 1,
	};
	int i, err;

	for (i = 0; i < QHCA_NUM_TABLES; i++) {
		err = qhca_table_init(&core->table[i], first[i]);
		if (err)
			goto free;
	}
	/* Page 0 belongs to the kernel. */
	err = qhca_bitmap_init(&core->db_pages, core->qdev.caps.num_db_pages,
			       1);
	if (err)
		goto free;
	return 0;

free:
	qhca_numbers_free(core);
	return err;
}

static int qhca_events_start(struct qhca_core *core)
{
	int lost = atomic_read(&core->cmdq.lost_events);
	int err;

	err = qhca_async_eq_create(core);
	if (err) {
		dev_err(qhca_device(core), "no event queue: %d\n", err);
		return err;
	}
	qhca_cmdq_use_events(core, true);
	err = qhca_core_simple(core, QHCA_CMD_NOP, 0, 0);
	if (err) {
		qhca_cmdq_use_events(core, false);
		qhca_async_eq_destroy(core);
		return err;
	}
	/* All goes on without, but slowly. */
	if (atomic_read(&core->cmdq.lost_events) != lost)
		dev_warn(qhca_device(core), "interrupts do not arrive\n");
	return 0;
}

/* Change the state, unless the device has died meanwhile. */
static int qhca_change_state(struct qhca_core *core, enum qhca_dev_state from,
			     enum qhca_dev_state to)
{
	unsigned long irqflags;
	int err = -EIO;

	spin_lock_irqsave(&core->state_lock, irqflags);
	if (core->qdev.state == from) {
		WRITE_ONCE(core->qdev.state, to);
		err = 0;
	}
	spin_unlock_irqrestore(&core->state_lock, irqflags);
	return err;
}

static void qhca_revive(struct qhca_core *core)
{
	unsigned long irqflags;

	spin_lock_irqsave(&core->state_lock, irqflags);
	WRITE_ONCE(core->qdev.state, QHCA_DEV_DOWN);
	pci_set_master(core->qdev.pdev);
	spin_unlock_irqrestore(&core->state_lock, irqflags);
}

static int qhca_hw_start(struct qhca_core *core)
{
	int err;

	err = qhca_reset(core);
	if (err) {
		dev_err(qhca_device(core), "reset failed: %d\n", err);
		return err;
	}
	qhca_revive(core);
	err = qhca_cmdq_start(core);
	if (err)
		goto silence;
	err = qhca_query_caps(core);
	if (err)
		goto stop_cmdq;
	/* INIT_HCA lets virtual functions on to the network again. */
	err = qhca_vfs_start(core);
	if (err)
		goto stop_cmdq;
	err = qhca_init_hca(core);
	if (err)
		goto stop_cmdq;
	err = qhca_numbers_init(core);
	if (err)
		goto stop_cmdq;
	err = qhca_events_start(core);
	if (err)
		goto stop_numbers;
	err = qhca_change_state(core, QHCA_DEV_DOWN, QHCA_DEV_UP);
	if (err)
		goto stop_events;
	qhca_health_start(core);
	qhca_stage2_restart(core);
	return 0;

stop_events:
	qhca_cmdq_use_events(core, false);
	qhca_async_eq_destroy(core);
stop_numbers:
	qhca_cmdq_stop(core);
	qhca_silence(core);
	qhca_numbers_free(core);
	return err;
stop_cmdq:
	qhca_cmdq_stop(core);
silence:
	qhca_silence(core);
	return err;
}

static void qhca_hw_stop(struct qhca_core *core)
{
	qhca_health_stop(core);
	/* This fails if the device is dead, and so would all commands. */
	qhca_change_state(core, QHCA_DEV_UP, QHCA_DEV_DOWN);
	qhca_cmdq_drain(core);
	qhca_cmdq_use_events(core, false);
	qhca_async_eq_destroy(core);
	/* The reset that follows would do the same, so errors do not matter. */
	qhca_core_simple(core, QHCA_CMD_TEARDOWN_HCA, 0, 0);
	qhca_cmdq_stop(core);
	qhca_silence(core);
	qhca_numbers_free(core);
}

/**
 * qhca_start - reset the function and start it
 * @core: function
 *
 * The first start creates the netdev, and later ones attach it again, so that
 * its name, addresses and settings outlive a reset.  If the function runs
 * already, this does nothing.
 *
 * Context: process, devlink instance lock held.
 * Return: 0 or a negative errno; then the function is silent.
 */
int qhca_start(struct qhca_core *core)
{
	int err;

	devl_assert_locked(priv_to_devlink(core));
	if (test_bit(QHCA_CORE_REMOVING, &core->flags))
		return -ENODEV;
	if (test_bit(QHCA_CORE_STARTED, &core->flags))
		return 0;
	err = qhca_hw_start(core);
	if (err)
		return err;
	if (core->qdev.netdev)
		err = qhca_netdev_attach(core);
	else
		err = qhca_netdev_create(core);
	if (err)
		goto stop_hw;
	err = core->rdma_enabled ? qhca_aux_add(core) : 0;
	if (err)
		goto detach;
	set_bit(QHCA_CORE_STARTED, &core->flags);
	qhca_report_healthy(core);
	return 0;

detach:
	qhca_netdev_detach(core);
stop_hw:
	qhca_hw_stop(core);
	return err;
}

/**
 * qhca_stop - undo qhca_start(), whatever state the device is in
 * @core: function
 *
 * Context: process, devlink instance lock held.
 */
void qhca_stop(struct qhca_core *core)
{
	devl_assert_locked(priv_to_devlink(core));
	if (!test_and_clear_bit(QHCA_CORE_STARTED, &core->flags))
		return;
	if (core->rdma)
		qhca_aux_remove(core);
	qhca_netdev_detach(core);
	qhca_hw_stop(core);
}
