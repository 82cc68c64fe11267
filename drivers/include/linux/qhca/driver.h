/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The interface between qhca.ko, which owns the PCI function, and the drivers
 * of its auxiliary devices (qhca_ib.ko).
 *
 * Lifetime: a struct qhca_dev is valid from an auxiliary driver's probe to the
 * end of the matching remove.  After a fatal error, a reset or an unplug every
 * command returns -EIO at once.  The remove function must still free what the
 * driver has allocated, but need not (and cannot) destroy it in the device.
 */
#ifndef QHCA_DRIVER_H
#define QHCA_DRIVER_H

#include <linux/auxiliary_bus.h>
#include <linux/io.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/types.h>
#include <qhca/qhca_hw.h>

#define QHCA_AUX_RDMA		"rdma"		/* auxiliary device "qhca.rdma" */

/* State of the function as seen by all its users. */
enum qhca_dev_state {
	QHCA_DEV_DOWN,		/* no commands: probing, resetting, removed */
	QHCA_DEV_UP,
	QHCA_DEV_DEAD,		/* fatal error or unplugged: no MMIO, no commands */
};

/*
 * struct qhca_caps in host byte order, clamped to what this driver supports.
 * The fields are those of the hardware's structure.
 */
struct qhca_caps_host {
	u64 features;
	u64 max_mr_size;
	u64 page_sizes;
	u64 devmem_size;
	u64 clock_hz;
	u32 log_pt, log_qp, log_cq, log_srq, log_eq;	/* entries in use */
	u32 log_max_wq_depth, log_max_cq_depth, log_max_eq_depth;
	u32 log_max_wqe_stride, log_max_rwqe_stride, log_max_eth_ring;
	u32 max_eth_queues;
	u32 max_mtu, max_rd_atomic, max_sge, max_inline, max_gids;
	u32 max_mcast_members, max_flows, num_counter_sets;
	u32 num_db_pages, num_counters, num_vectors, total_vfs;
	u32 max_pool_blocks, max_pool_keys, max_eth_mtu, first_user_qpn;
	u32 max_msg_size_log, reserved_lkey;
};

/* Queues with a threshold, past which the device reads their index again. */
enum qhca_threshold {
	QHCA_THRESHOLD_CQ,
	QHCA_THRESHOLD_RQ,
	QHCA_THRESHOLD_SRQ,
	QHCA_NUM_THRESHOLDS
};

/**
 * struct qhca_dev - one PCI function.
 * @pdev:       the function; DMA is mapped for &pdev->dev
 * @netdev:     its Ethernet port
 * @gvmi:       which function of the adapter this is: 0 is the physical one
 * @caps:       constant while an auxiliary driver is bound
 * @db_phys:    CPU physical address of BAR 2; page n at n * QHCA_DB_PAGE_SIZE
 * @db_kernel:  doorbell page 0, mapped
 * @devmem_phys: CPU physical address of BAR 4, 0 if there is none
 * @pool_blocks: blocks of the memory pool to preallocate
 * @pool_block_size: bytes of each, a power of two
 * @threshold_percent: threshold of a queue whose owner chooses none, in percent
 *                     of
 *	its depth
 * @strict_lkey: the device takes the reserved L_Key for segments of sends and
 *	receives only; set while no auxiliary driver is bound
 * @num_comp_vectors: completion vectors usable by qhca_eq_create()
 * @state:      read with READ_ONCE
 */
struct qhca_dev {
	struct pci_dev *pdev;
	struct net_device *netdev;
	u32 gvmi;
	struct qhca_caps_host caps;
	phys_addr_t db_phys;
	void __iomem *db_kernel;
	phys_addr_t devmem_phys;
	u32 pool_blocks;
	u64 pool_block_size;
	u16 threshold_percent[QHCA_NUM_THRESHOLDS];
	bool strict_lkey;
	int num_comp_vectors;
	enum qhca_dev_state state;
};

struct qhca_aux_dev {
	struct auxiliary_device adev;
	struct qhca_dev *qdev;
};

static inline struct qhca_dev *qhca_dev_of_aux(struct auxiliary_device *adev)
{
	return container_of(adev, struct qhca_aux_dev, adev)->qdev;
}

/*
 * Ring a doorbell (QHCA_DB_*) of page 0.  Any context.  A doorbell is one
 * 64-bit write, which is why the drivers are for 64-bit machines only.
 */
static inline void qhca_ring(struct qhca_dev *qdev, u32 offset, u64 value)
{
	writeq(value, qdev->db_kernel + offset);
}

/**
 * struct qhca_cmd - one command.
 * @opcode: enum qhca_opcode
 * @index:  object number
 * @param:  per command
 * @in:     input, copied to a mailbox
 * @in_len: its length, at most QHCA_MAILBOX_SIZE bytes
 * @out:    output, copied from a mailbox
 * @out_len: its length, at most QHCA_MAILBOX_SIZE bytes
 * @out_param: result
 */
struct qhca_cmd {
	u16 opcode;
	u32 index;
	u32 param;
	const void *in;
	u32 in_len;
	void *out;
	u32 out_len;
	u64 out_param;
};

/*
 * Execute a command and wait until it has completed.  Sleeps.  Returns 0; -EIO
 * if the device is dead; -ETIMEDOUT if it did not answer (the driver then
 * declares the device dead and recovers it); or the errno of the command's
 * status:  BAD_PARAM, BAD_LEN, BAD_INDEX -EINVAL; BAD_STATE, IN_USE -EBUSY;
 * NO_RESOURCE -ENOSPC; UNSUPPORTED and BAD_OPCODE -EOPNOTSUPP; NOT_PERMITTED
 * -EPERM; DMA_ERR -EFAULT; NOT_MAPPED and NOT_INIT -ENXIO; any other
 * -EREMOTEIO.
 *
 * If this returns -EIO the device no longer reads or writes memory, so the
 * caller may free what the device was using.
 */
int qhca_cmd_exec(struct qhca_dev *qdev, struct qhca_cmd *cmd);

/*
 * Declare the device dead because it violates its specification, for example by
 * refusing to give memory back, or by writing contradictory completions.  When
 * this returns the device no longer reads or writes memory, as after -EIO.
 * Recovery follows, as after any other death.  @why is logged.  Any context.
 */
void qhca_abandon(struct qhca_dev *qdev, const char *why);

/*
 * Object numbers of the tables PT, QP, CQ, SRQ (enum qhca_table), and the
 * memory of the tables: allocating a number maps its chunk on first use.
 * Numbers are allocated cyclically, so that a late packet does not find its QPN
 * or key in use again at once.  qhca_index_alloc() sleeps.
 */
int qhca_index_alloc(struct qhca_dev *qdev, enum qhca_table table, u32 *index);
/* Take one particular number (QPN 1). */
int qhca_index_take(struct qhca_dev *qdev, enum qhca_table table, u32 index);
void qhca_index_free(struct qhca_dev *qdev, enum qhca_table table, u32 index);
/*
 * CPU address of a table entry that software writes (protection table only).
 * Valid while the index is allocated.
 */
struct qhca_pte *qhca_pte(struct qhca_dev *qdev, u32 index);

/* Doorbell pages for user contexts; page 0 is the kernel's. */
int qhca_db_page_alloc(struct qhca_dev *qdev, u32 *page);
void qhca_db_page_free(struct qhca_dev *qdev, u32 page);

/*
 * struct qhca_eq - an event queue of an auxiliary driver, with its own vector.
 * The handler is called once for each entry, in hard interrupts, and must not
 * sleep.
 */
struct qhca_eq;
typedef void (*qhca_eq_handler)(void *ctx, const struct qhca_eqe *eqe);
struct qhca_eq *qhca_eq_create(struct qhca_dev *qdev, int comp_vector,
			       u32 log_depth, qhca_eq_handler handler,
			       void *ctx);
void qhca_eq_destroy(struct qhca_eq *eq);
u32 qhca_eq_number(const struct qhca_eq *eq);
/* Wait until no handler of this EQ is running. */
void qhca_eq_synchronize(struct qhca_eq *eq);

/*
 * An atomic notifier chain delivers asynchronous events (enum qhca_event except
 * CMD and COMPLETION); data is a const struct qhca_eqe *.  qhca.ko itself sends
 * QHCA_EVENT_DEVICE_FATAL when the device has died.
 */
int qhca_notifier_register(struct qhca_dev *qdev, struct notifier_block *nb);
void qhca_notifier_unregister(struct qhca_dev *qdev, struct notifier_block *nb);

/*
 * Read counters [first, first + count) of enum qhca_counter, host order.
 * Sleeps.
 */
int qhca_query_counters(struct qhca_dev *qdev, u32 first, u32 count, u64 *values);

/* The same of a counter set; set 0 has what no other set has counted. */
int qhca_query_counter_set(struct qhca_dev *qdev, u32 set, u32 first,
			   u32 count, u64 *values);

/*
 * Read the clock of completions' timestamps.  Any context.  Returns 0, or -EIO
 * if the device is dead.
 */
int qhca_read_clock(struct qhca_dev *qdev, u64 *clock);

/*
 * Stage 2 of a virtual function, for the driver that passes the function to a
 * virtual machine.  That driver makes the PA2MA tables; see "Stage 2" of the
 * hardware specification.  The tables are read by the physical function, and
 * the pages that they name are accessed by the virtual one, so each is mapped
 * for its own function.
 *
 * The functions below send a command of the physical function, and sleep.  They
 * return -EIO while that one is dead or is being reset.  The virtual function
 * may go on meanwhile, other than with qhca_cmd_exec(): its user must end the
 * function's DMA by other means before it gives memory up.
 */

/**
 * struct qhca_stage2_ops - the events that the user of a virtual function gets
 * @fault:   an event QHCA_EVENT_STAGE2_FAULT; in hard interrupts
 * @restart: the physical function has been reset and is up again: the device
 *	has lost the function's row, and the function is dead.  Sleeps.  No
 *	qhca_stage2_detach() in here.
 */
struct qhca_stage2_ops {
	void (*fault)(void *priv, const struct qhca_eqe *eqe);
	void (*restart)(void *priv);
};

struct qhca_core;

/**
 * struct qhca_stage2 - a virtual function with a user, which embeds this
 * @core: the physical function
 * @vf:   the virtual function
 * @gvmi: its number
 * @ops:  what the user wants to know
 * @priv: argument of @ops
 */
struct qhca_stage2 {
	struct qhca_core *core;
	struct pci_dev *vf;
	u32 gvmi;
	const struct qhca_stage2_ops *ops;
	void *priv;
};

/*
 * Called with the device lock of @vf held, by the driver that is being bound to
 * it.  Callbacks may run before this returns.  -EOPNOTSUPP: the device has no
 * stage 2.
 */
int qhca_stage2_attach(struct qhca_stage2 *s2, struct pci_dev *vf,
		       const struct qhca_stage2_ops *ops, void *priv);
/*
 * No callback runs any more when this returns.  The functions below may be called
 * until the driver is unbound from @vf.
 */
void qhca_stage2_detach(struct qhca_stage2 *s2);
/* The device for which the nodes of the tables are mapped. */
struct device *qhca_stage2_table_device(struct qhca_stage2 *s2);
/*
 * Switch stage 2 on with the tables at @root, or off.  A function that is in
 * use dies; on success there is no more DMA by the tables of before.
 */
int qhca_stage2_set(struct qhca_stage2 *s2, dma_addr_t root, u8 page_shift,
		    u8 levels);
int qhca_stage2_unset(struct qhca_stage2 *s2);
/* On success there is no more DMA by entries cleared before. */
int qhca_stage2_invalidate(struct qhca_stage2 *s2, u64 start, u64 length);
/* Answer a fault or a pin request.  Fails if the device has forgotten it. */
int qhca_stage2_resume(struct qhca_stage2 *s2, u32 token, bool ok);

#endif /* QHCA_DRIVER_H */
