/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Declarations that the files of qhca.ko share.  <linux/qhca/driver.h> has
 * those for other drivers.
 */
#ifndef QHCA_CORE_H
#define QHCA_CORE_H

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/semaphore.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/devlink.h>

#include <linux/qhca/driver.h>

#define QHCA_DRV_NAME		"qhca"

/* The vectors of a function that has as many; see qhca_vector(). */
#define QHCA_VECTOR_ASYNC	0	/* EQ 0: commands, asynchronous events */
#define QHCA_VECTOR_ETH		1	/* Ethernet queue 0; the others follow */
#define QHCA_ETH_MAX_QUEUES	16

/*
 * With so many vectors each queue has one of its own: one for events, and one each for
 * Ethernet and for completions.
 */
#define QHCA_VECTORS_APART	3

#define QHCA_ASYNC_LOG_DEPTH	8

/* Defaults of the memory pool; devlink parameters change them. */
#define QHCA_POOL_BLOCKS	8
#define QHCA_POOL_BLOCK_SIZE	SZ_4M
#define QHCA_VF_POOL_BLOCKS	1	/* there may be many such functions */

/*
 * Defaults of the thresholds, in percent of the depth.  The device refetches a
 * CQ's index only when half of the ring seems to be in use, and a receive
 * queue's index only when no more than a quarter of the ring seems to be
 * posted.
 */
#define QHCA_CQ_THRESHOLD	50
#define QHCA_RQ_THRESHOLD	25

/* How long the device may take to finish a reset, and a command. */
#define QHCA_RESET_TIMEOUT	(10 * HZ)
#define QHCA_CMD_TIMEOUT	(30 * HZ)

/**
 * struct qhca_bitmap - allocator of numbers, which goes through them cyclically
 * @lock:  protects @bits and @next; taken from any context
 * @bits:  one bit for each number, set while the number is in use
 * @size:  how many numbers there are
 * @first: numbers below this one are allocated only by qhca_bitmap_take()
 * @next:  number at which the next search starts
 */
struct qhca_bitmap {
	spinlock_t lock;	/* bits, next */
	unsigned long *bits;
	u32 size;
	u32 first;
	u32 next;
};

struct qhca_chunk {
	void *va;		/* NULL until mapped; then constant */
	dma_addr_t dma;
};

/**
 * struct qhca_ctx_table - one table of the device in host memory
 * @map:         the object numbers of the table
 * @lock:        serialises mapping of chunks
 * @chunk:       chunks, mapped on first use and kept until the table is freed
 * @num_chunks:  length of @chunk
 * @log_entry:   log2 of the bytes of an entry
 * @log_entries: log2 of the number of entries
 * @log_chunk:   log2 of the bytes of a chunk
 */
struct qhca_ctx_table {
	struct qhca_bitmap map;
	struct mutex lock;	/* mapping of chunks */
	struct qhca_chunk *chunk;
	u32 num_chunks;
	u8 log_entry;
	u8 log_entries;
	u8 log_chunk;
};

/**
 * struct qhca_cmd_ctx - software's side of a command slot
 * @done:  completed when the event has arrived, or the device is dead
 * @mbox:  input mailbox, followed by the output mailbox
 * @dma:   bus address of @mbox
 * @token: token of the command in the slot; an event with another one is late
 * @busy:  a command is in the slot; protected by the queue's lock
 * @unit:  the semaphore that counts the slot while it is busy
 */
struct qhca_cmd_ctx {
	struct completion done;
	void *mbox;
	dma_addr_t dma;
	u16 token;
	bool busy;
	struct semaphore *unit;
};

#define QHCA_CMD_SLOTS		BIT(QHCA_MAX_LOG_CMD_SLOTS)

/* Slots that only invalidations use; see qhca_cmd_get_unit(). */
#define QHCA_CMD_RESERVED	4

/**
 * struct qhca_cmdq - the command queue
 * @slot:   slots as the device sees them
 * @dma:    bus address of @slot
 * @ctx:    software's side of each slot
 * @free:   number of free slots that any command may use.  A command that holds
 *          a unit of this semaphore or the next finds a free slot.
 * @reserved: number of free slots that only invalidations may use
 * @lock:   protects the busy flags and @token; taken in hard interrupts
 * @token:  last token used
 * @running: the device accepts commands
 * @events: waiters wait for events; otherwise they poll
 * @lost_events: number of commands found complete before their event arrived
 * @timeouts: number of commands without an answer
 */
struct qhca_cmdq {
	struct qhca_cmd_slot *slot;
	dma_addr_t dma;
	struct qhca_cmd_ctx ctx[QHCA_CMD_SLOTS];
	struct semaphore free;
	struct semaphore reserved;
	spinlock_t lock;	/* ctx[].busy, ctx[].token, token */
	u16 token;
	bool running;
	bool events;
	atomic_t lost_events;
	atomic_t timeouts;
};

/* Geometry of a cache, in host byte order. */
struct qhca_cache_size {
	u16 sets;
	u16 blocks;
};

/**
 * struct qhca_death - what is known of the function's last death
 * @why:     reason, as in the log; empty: it has not died yet
 * @status:  register STATUS then
 * @info:    register FATAL_INFO then
 * @answers: there was a device to read these from
 * @fresh:   devlink does not know of it yet
 */
struct qhca_death {
	char why[48];
	u32 status;
	u32 info;
	bool answers;
	bool fresh;
};

/* Whether the function may run; protected by the devlink instance lock. */
enum qhca_core_flag {
	QHCA_CORE_STARTED,	/* qhca_start() succeeded, qhca_stop() to come */
	QHCA_CORE_FROZEN,	/* a PCI reset or suspend is under way */
	QHCA_CORE_REMOVING,	/* the driver is being unbound: no more starts */
	QHCA_CORE_REPORTING,	/* devlink is registered and has the reporters */
};

/**
 * struct qhca_core - private part of a function
 * @qdev:       the part other drivers see
 * @regs:       BAR 0
 * @flags:      enum qhca_core_flag; changed under the devlink instance lock,
 *              except QHCA_CORE_REPORTING
 * @state_lock: serialises changes of @qdev.state; taken in hard interrupts
 * @clock_lock: orders readers of the clock, because a read of its low half
 *              latches the high half
 * @wq:         for all works of the function
 * @recover_work: starts the function again after a death or a failed start
 * @health_work:  polls the device's status
 * @last_recovery: when the last attempt to recover ended; under the devlink
 *              instance lock
 * @recoveries: number of attempts that followed each other closely; under the
 *              devlink instance lock
 * @total_recoveries: number of attempts since probe
 * @death:      the last one; under @state_lock
 * @fatal_reporter: devlink's view of deaths
 * @tx_reporter: devlink's view of the transmit queue
 * @num_vectors: number of MSI-X vectors allocated
 * @num_cpus:   number of CPUs for which they were
 * @eth_vectors: how many of them are for Ethernet queues, at least 1; completion vectors
 *              follow.  Changed as @cache
 * @cmdq:       command queue
 * @table:      device tables, indexed by enum qhca_table
 * @cache:      geometry of the caches, by enum qhca_cache_id, for INIT_HCA.  It
 *              is 0 x 0 before the first start, which takes the device's
 *              default, and always in virtual functions, which take what there
 *              is.  It changes under the devlink instance lock.
 * @cache_max:  the device's limits of @cache, known after the first start
 * @vf:         settings of virtual functions, indexed by their number, that the
 *              device has or gets at the next start; allocated at the first
 * @num_vf:     length of @vf, 0 if the device has no virtual functions
 * @vf_lock:    protects @vf and orders the commands that change it; taken
 *              under the devlink instance lock or RTNL
 * @stage2:     users of stage 2, indexed by virtual function
 * @stage2_shut: the driver is being unbound; @stage2 gets no more users
 * @stage2_owed: virtual functions whose stage 2 is still to be switched off
 * @stage2_lock: protects @stage2, and is held while a user gets a fault
 * @stage2_mutex: held while @stage2 and @stage2_shut change, and while users
 *              learn that the device has been started again
 * @unsolicited_acks: the device sends and honours them; changed as @cache
 * @db_pages:   doorbell pages allocated to user contexts
 * @async_eq:   event queue 0
 * @notifier:   listeners to asynchronous events
 * @rdma_enabled: the function offers RDMA from its next start on; changed as
 *              @cache
 * @rdma:       auxiliary device, or NULL
 */
struct qhca_core {
	struct qhca_dev qdev;
	void __iomem *regs;
	struct pci_saved_state *saved_state;
	unsigned long flags;
	spinlock_t state_lock;	/* qdev.state */
	spinlock_t clock_lock;	/* the latch of CLOCK_HI */
	struct workqueue_struct *wq;
	struct delayed_work recover_work;
	struct delayed_work health_work;
	unsigned long last_recovery;
	unsigned int recoveries;
	atomic_t total_recoveries;
	struct qhca_death death;
	struct devlink_health_reporter *fatal_reporter;
	struct devlink_health_reporter *tx_reporter;
	int num_vectors;
	u32 num_cpus;
	u32 eth_vectors;
	struct qhca_cmdq cmdq;
	struct qhca_ctx_table table[QHCA_NUM_TABLES];
	struct qhca_cache_size cache[QHCA_NUM_CACHES];
	struct qhca_cache_size cache_max[QHCA_NUM_CACHES];
	struct qhca_vf_config *vf;
	int num_vf;
	struct mutex vf_lock;	/* vf */
	struct qhca_stage2 *stage2[QHCA_MAX_VFS];
	bool stage2_shut;
	DECLARE_BITMAP(stage2_owed, QHCA_MAX_VFS);
	spinlock_t stage2_lock;	/* stage2 */
	struct mutex stage2_mutex;	/* stage2, order of restarts */
	bool unsolicited_acks;
	struct qhca_bitmap db_pages;
	struct qhca_eq *async_eq;
	struct atomic_notifier_head notifier;
	bool rdma_enabled;
	struct qhca_aux_dev *rdma;
};

static inline struct qhca_core *qhca_core_of(struct qhca_dev *qdev)
{
	return container_of(qdev, struct qhca_core, qdev);
}

static inline struct device *qhca_device(struct qhca_core *core)
{
	return &core->qdev.pdev->dev;
}

static inline u32 qhca_read(struct qhca_core *core, u32 reg)
{
	return readl(core->regs + reg);
}

static inline void qhca_write(struct qhca_core *core, u32 reg, u32 value)
{
	writel(value, core->regs + reg);
}

/*
 * Is there a device where the registers were?  If not, most machines read all
 * ones and some 0, which STATUS has during a reset; so this reads a constant.
 */
static inline bool qhca_answers(struct qhca_core *core)
{
	return qhca_read(core, QHCA_REG_MAGIC) == QHCA_MAGIC;
}

static inline enum qhca_dev_state qhca_state(struct qhca_core *core)
{
	return READ_ONCE(core->qdev.state);
}

/*
 * A guest to which the function is passed sees a PCI device like any other, so
 * that the PCI core cannot tell; the device can.
 */
static inline bool qhca_is_vf(struct qhca_core *core)
{
	return core->qdev.gvmi;
}

/*
 * The vector to use for @wanted.  A virtual function may have fewer vectors than
 * QHCA_VECTORS_APART; then its queues share the last one.
 */
static inline int qhca_vector(struct qhca_core *core, int wanted)
{
	return min_t(int, wanted, core->qdev.caps.num_vectors - 1);
}

/* The first completion vector. */
static inline int qhca_comp_base(struct qhca_core *core)
{
	return QHCA_VECTOR_ETH + core->eth_vectors;
}

static inline unsigned long qhca_irq_flags(struct qhca_core *core)
{
	return core->qdev.caps.num_vectors >= QHCA_VECTORS_APART ? 0 :
								   IRQF_SHARED;
}

/* init.c */
int qhca_start(struct qhca_core *core);
void qhca_stop(struct qhca_core *core);
void qhca_silence(struct qhca_core *core);

/* cmd.c */
int qhca_cmdq_alloc(struct qhca_core *core);
void qhca_cmdq_free(struct qhca_core *core);
int qhca_cmdq_start(struct qhca_core *core);
void qhca_cmdq_stop(struct qhca_core *core);
void qhca_cmdq_use_events(struct qhca_core *core, bool on);
void qhca_cmdq_drain(struct qhca_core *core);
void qhca_cmdq_fail_all(struct qhca_core *core);
void qhca_cmdq_event(struct qhca_core *core, const struct qhca_eqe *eqe);
int qhca_core_exec(struct qhca_core *core, struct qhca_cmd *cmd);
int qhca_core_simple(struct qhca_core *core, u16 opcode, u32 index, u32 param);
int qhca_vf_query(struct qhca_core *core, int vf, struct qhca_vf_state *state,
		  bool starting);

/* table.c */
int qhca_bitmap_init(struct qhca_bitmap *map, u32 size, u32 first);
void qhca_bitmap_free(struct qhca_bitmap *map);
int qhca_bitmap_get(struct qhca_bitmap *map, u32 *number);
int qhca_bitmap_take(struct qhca_bitmap *map, u32 number);
void qhca_bitmap_put(struct qhca_bitmap *map, u32 number);
void qhca_table_layout(struct qhca_ctx_table *table, u32 entry_size,
		       u8 log_entries);
int qhca_table_init(struct qhca_ctx_table *table, u32 first);
void qhca_table_free(struct qhca_core *core, struct qhca_ctx_table *table);

/* eq.c */
int qhca_async_eq_create(struct qhca_core *core);
void qhca_async_eq_destroy(struct qhca_core *core);

/* health.c */
enum qhca_dev_state qhca_mark_dead(struct qhca_core *core);
void qhca_die(struct qhca_core *core, const char *why);
bool qhca_check_alive(struct qhca_core *core);
bool qhca_is_present(struct qhca_core *core);
void qhca_health_start(struct qhca_core *core);
void qhca_health_stop(struct qhca_core *core);
void qhca_recover_work(struct work_struct *work);
void qhca_recover_later(struct qhca_core *core);
int qhca_recover_now(struct qhca_core *core, bool by_user,
		     struct netlink_ext_ack *extack);
const char *qhca_fatal_name(u32 status);
void qhca_last_death(struct qhca_core *core, struct qhca_death *death);
void qhca_health_work(struct work_struct *work);

/* sriov.c */
void qhca_vfs_init(struct qhca_core *core);
void qhca_vfs_fini(struct qhca_core *core);
int qhca_vfs_start(struct qhca_core *core);
void qhca_vfs_evict(struct qhca_core *core);
void qhca_vfs_remove(struct qhca_core *core);
int qhca_sriov_configure(struct pci_dev *pdev, int num);

/* stage2.c */
void qhca_stage2_init(struct qhca_core *core);
int qhca_stage2_clear(struct qhca_core *core, int num);
void qhca_stage2_found(struct qhca_core *core, int vf, u32 status);
void qhca_stage2_event(struct qhca_core *core, const struct qhca_eqe *eqe);
void qhca_stage2_restart(struct qhca_core *core);
void qhca_stage2_shut(struct qhca_core *core);
struct pci_dev *qhca_stage2_get_vf(struct qhca_core *core);

/* main.c */
struct qhca_core *qhca_core_of_vf(struct pci_dev *vf);

/* aux.c */
int qhca_aux_add(struct qhca_core *core);
void qhca_aux_remove(struct qhca_core *core);

/* params.c */
int qhca_params_register(struct qhca_core *core);
void qhca_params_unregister(struct qhca_core *core);
int qhca_params_load(struct qhca_core *core, struct netlink_ext_ack *extack);

/* reporter.c */
int qhca_reporters_create(struct qhca_core *core);
void qhca_reporters_destroy(struct qhca_core *core);
int qhca_report_death(struct qhca_core *core, struct qhca_death *death);
void qhca_report_healthy(struct qhca_core *core);

/* devlink.c */
extern const struct devlink_ops qhca_devlink_ops;

#endif /* QHCA_CORE_H */
