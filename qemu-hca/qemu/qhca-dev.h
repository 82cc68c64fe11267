/*
 * qhca adapter: the QEMU device around the engine
 *
 *   qhca-pci.c       QOM, realize, exit
 *   qhca-vf.c        virtual functions: QOM, realize, exit
 *   qhca-function.c  registers, configuration space, BARs, reset
 *   qhca-doorbell.c  doorbells, and those that are deferred
 *   qhca-hint.c      programs that poll in vain, and processors that are yielded
 *   qhca-await.c     vCPUs that wait in a doorbell for its answer
 *   qhca-props.c     properties: limits, geometry, fault injection
 *   qhca-thread.c    who runs the engine, and when
 *   qhca-wait.c      how the device's thread waits for work
 *   qhca-dma.c       the engine's access to the guest's memory
 *   qhca-net.c       frames from and to the netdev
 *   qhca-migrate.c   migration and snapshots
 *   qhca-link.c      link to another process, by shared memory
 *   qhca-link-frames.c  frames from and to that process
 *   qhca-dump.c      capture of those
 *   qhca-timeline.c  when each step of a message happens
 *   qhca-monitor.c   QMP and HMP
 *   qhca-trace.c     the engine's trace points as QEMU's
 *
 * Threads.  Any of these may run the engine: a vCPU that writes a register or
 * rings a doorbell, the main loop that delivers a frame or a timer, and the
 * device's own thread, which does all work beyond the small slice that the
 * others do at once.  Waking the thread costs far more than a packet, so doing
 * work at once saves latency; the thread keeps a busy HCA from delaying vCPUs
 * and the main loop.
 *
 * Locks, in the order in which they nest:
 *
 *   BQL            network back end, interrupts, reset, properties.
 *   engine_gate    held by a thread that waits for engine_lock because it
 *                  cannot defer its work, and by the device's thread, which
 *                  would otherwise take engine_lock again before the other
 *                  wakes.
 *   engine_lock    the engine, and the fields so marked.  Held for one slice of
 *                  work, or by a vCPU that polls for several, until somebody
 *                  else wants it; the BQL is never taken inside it.
 *   doorbell_lock  the deferred doorbells.
 *
 * The output of the engine (frames for a netdev, vectors) is therefore queued
 * under engine_lock, and delivered under the BQL after that lock was dropped.  The
 * device's thread never takes the BQL, so that the holder of the BQL can stop
 * the thread; a bottom half delivers the thread's output.
 *
 * Reentrant calls.  A delivery runs code of other devices, and a guest can make
 * that code access this device: a second NIC on the same hub receives our
 * frame, and its interrupt is a write to our register; an interrupt vector of
 * our own points at our BAR; a vIOMMU reports the fault that the engine's DMA
 * has just caused.  Such an access arrives on the thread that is already in the
 * device, with the BQL.  It is recognised by two flags under the BQL,
 * `delivering` and `in_engine`, and never enters the engine: registers refuse
 * it, as QEMU's mem_reentrancy_guard does where that guard is engaged;
 * doorbells are deferred; a reset that finds the engine on the stack happens
 * when the engine returns.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QHCA_DEV_H
#define QHCA_DEV_H

#include "hw/pci/pci_device.h"
#include "net/net.h"
#include "qemu/event_notifier.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qom/object.h"

/* The C library's headers may have included the kernel's. */
#define __u8   qhca_u8
#define __le16 qhca_le16
#define __le32 qhca_le32
#define __le64 qhca_le64
#include "../core/qhca.h"
#undef __u8
#undef __le16
#undef __le32
#undef __le64

#include "../link/streaming.h"
#include "qhca-compat.h"
#include "qhca-ring.h"

#define TYPE_QHCA "qhca"
OBJECT_DECLARE_SIMPLE_TYPE(QhcaState, QHCA)
#define TYPE_QHCA_VF "qhca-vf"
OBJECT_DECLARE_SIMPLE_TYPE(QhcaVfState, QHCA_VF)

#define QHCA_MAX_FUNCTIONS  (1 + QHCA_MAX_VFS)
QEMU_BUILD_BUG_ON(QHCA_MAX_FUNCTIONS > 64);     /* bits of a bitmap */

#define QHCA_MAX_DOORBELLS  1024    /* deferred; more wait for the engine */
#define QHCA_DMA_WINDOWS    4
#define QHCA_FLUSH_FRAMES   32      /* sent under the BQL at a time */

typedef struct QhcaDoorbell {
    uint32_t page;
    uint16_t offset;
    uint16_t gvmi;
    uint64_t value;
    bool alone;                 /* qhca_is_alone() of the access that rings it now */
} QhcaDoorbell;

/* A stretch of guest RAM as the function addresses it. */
typedef struct QhcaDmaWindow {
    hwaddr first;
    hwaddr last;
    MemoryRegionCache ram;  /* of @first; no ram.mrs.mr: not in use */
} QhcaDmaWindow;

/* The kinds of reset, each of which does what the one before does. */
typedef enum QhcaReset {
    QHCA_RESET_DEVICE,
    QHCA_RESET_PCI,             /* FLR as well; clears device memory */
} QhcaReset;

/* What each PCI function has for itself. */
typedef struct QhcaFunction {
    /* Set at realize, then constant. */
    QhcaState *s;               /* the adapter */
    PCIDevice *dev;
    uint16_t gvmi;              /* 0: the physical function */
    const struct qhca_config *cfg;
    uint64_t devmem_size;
    MemoryRegion bar0;
    MemoryRegion regs;
    MemoryRegion doorbells;
    MemoryRegion devmem;

    /* BQL */
    QhcaReset reset_pending;    /* the strongest of those that are due */

    /* engine_lock */
    bool dma_iommu;             /* DMA passes a vIOMMU */
    QhcaDmaWindow dma[QHCA_DMA_WINDOWS];
    unsigned int dma_next;      /* window to replace */
    bool dma_changing;          /* the memory map is: make no windows */
    bool dma_wrote;             /* since the last read */
    MemoryListener listener;

    /* Between threads, without a lock */
    uint64_t irqs;              /* vectors raised, not yet delivered */
} QhcaFunction;

/* The monitor reads these; the holder of the lock named writes them. */
typedef struct QhcaStats {
    /* engine_lock */
    uint64_t slices;
    uint64_t thread_slices;
    uint64_t frames_deferred;
    uint64_t dma_windows_filled;
    uint64_t dma_refused;
    uint64_t copies_streamed;
    uint64_t link_bad_slots;
    uint64_t link_wakes_sent;
    uint64_t polls;
    uint64_t poll_frames;
    uint64_t awaits;
    uint64_t await_hits;
    /* doorbell_lock */
    uint64_t doorbells_deferred;
    /* BQL; of a link over shared memory: engine_lock */
    uint64_t frames_sent;
    uint64_t send_stalls;
    uint64_t frames_received;
    /* BQL */
    uint64_t mmio_refused;
    uint64_t receive_stalls;
    uint64_t interrupts;
    uint64_t link_connects;
    uint64_t link_losses;
    /* vCPUs */
    uint64_t yields;
    uint64_t long_yields;
    uint64_t poll_yields;
    /* the device's thread */
    uint64_t link_wakes_received;
    uint64_t thread_sleeps;
    uint64_t thread_naps;
    uint64_t thread_polls;
    uint64_t thread_poll_hits;
} QhcaStats;

/* What qhca_yield() has learned of one kind of occasion; it alone uses these. */
typedef struct QhcaYields {
    uint32_t skip;              /* occasions */
    uint32_t penalty;
} QhcaYields;

/*
 * The netdev's reads, each of which hands over a batch of frames, and the bottom half that does
 * the work which follows from them; with the BQL.
 */
typedef struct QhcaReads {
    QEMUBH *bh;
    bool scheduled;             /* the bottom half is */
    unsigned int num;           /* reads whose work has been put off */
    uint64_t waiting;           /* packets of RoCE whose work has been put off */
    uint64_t packets;           /* of RoCE, */
    size_t octets;              /* and octets of frames, that this read has brought to the engine */
} QhcaReads;

/* What came of a doorbell's wait. */
typedef enum QhcaAwaited {
    QHCA_AWAIT_NONE,            /* nothing that says anything */
    QHCA_AWAIT_CAME,
    QHCA_AWAIT_MISSED,
    QHCA_AWAIT_TRIED,           /* it did not wait, to see what happens then */
} QhcaAwaited;

/* What the device has learned of programs that answer each other: qhca-await.c, engine_lock. */
typedef struct QhcaAwait {
    uint64_t messages;          /* until the last doorbell of a send queue, */
    uint64_t acks;              /* and acknowledgements, of parts of messages as well */
    uint64_t received;          /* until the last slice */
    int64_t came_at;            /* when the last message came; get_clock() */
    int64_t rung_at;            /* when the last doorbell did */
    int64_t interval;           /* between doorbells that wait: the median; 0: unknown */
    uint32_t run;               /* of doorbells that answered messages */
    uint32_t doubled;           /* so often the run after which vCPUs wait */
    uint32_t more_run;          /* than the first time, until they wait */
    uint32_t score;             /* not 0: vCPUs wait */
    uint32_t waits;             /* since that run */
    uint32_t next_try;          /* of these, the one that does not wait */
    uint32_t try_after;         /* so many more the one after it */
    bool doubted;               /* that vCPUs should wait, by the last try */
    bool proved;                /* that they should, by a try after the first waits */
    QhcaAwaited last;
} QhcaAwait;

typedef struct QhcaPeer QhcaPeer;
struct hca_intro;

/* The link over shared memory, in place of a netdev. */
typedef struct QhcaLink {
    /* Set at realize, then constant. */
    char *path;                 /* of the socket; NULL: there is a netdev */
    bool server;                /* it listens there */
    uint32_t slots;             /* in each queue, if it listens */
    bool icrc;                  /* packets have one even if the peer needs none */
    int epoll_fd;
    int nap_fd;                 /* a timer */
    EventNotifier call;         /* from other threads to the device's */

    /* BQL */
    bool open;                  /* it looks for a peer, or has one */
    bool down;                  /* the user has pulled out the cable */
    int listen_fd;
    struct hca_intro *intro;    /* under way */
    uint64_t num_peers;         /* that there have been */
    QEMUTimer *timer;           /* QEMU_CLOCK_REALTIME: to connect, or give up */
    char *warned;               /* the last warning */

    /* engine_lock; the device's thread reads peer with RCU */
    QhcaPeer *peer;             /* written with the BQL as well */
    uint8_t *room;              /* for the one being sent, or the one before */
    struct hca_streaming streaming;
    bool sent;                  /* frames since the peer was woken */
    bool freed;                 /* slots, likewise */
    bool polls_on;              /* the program that polls, even after frames */
    bool took_back;             /* a vCPU waits for frames in place of a wake-up */
    int dump_fd;                /* of a capture, or -1 */
    char *dump;                 /* its path */

    /* Between threads, without a lock */
    bool asleep;                /* the device's thread is */
    bool naps;                  /* and wakes up by itself */
    uint64_t sleeps_until;      /* QEMU_CLOCK_VIRTUAL; 0: it is awake */
    bool quiet;                 /* there were hints in naps: the next begin without wake-ups */
    bool called;                /* to nap, and has not slept since */
    bool hinted;                /* a program polls while the thread is awake */
    bool attends;               /* a vCPU waits for frames with engine_lock */
    uint32_t polls;             /* how often a program has polled in vain */
    uint64_t frames_slept;      /* all until the thread woke, or could not sleep */
    uint32_t asked;             /* wake-ups, since the peer's messages were read */
    bool lost;                  /* the peer has ended */

    /* The device's thread */
    bool unread;                /* the peer has sent messages since they were read */
    bool readable;              /* they are to be read */
    uint32_t turns;             /* of the thread since then */
    uint64_t ended;             /* the number of the last peer that has ended */
    uint32_t polls_seen;        /* of polls, when the thread last began to sleep */
    int64_t nap_ends;           /* nanoseconds of the host */
} QhcaLink;

/* The steps of a message that a timeline marks. */
typedef enum QhcaMarkKind {
    QHCA_MARK_NONE,
    QHCA_MARK_DOORBELL,         /* a vCPU has written one */
    QHCA_MARK_ENTER,            /* and has the engine */
    QHCA_MARK_TX,               /* the engine has built a packet */
    QHCA_MARK_RX,               /* the engine has accepted a packet */
    QHCA_MARK_PLACED,           /* its payload is in the guest's memory */
    QHCA_MARK_CQE,              /* the engine has written a completion */
    QHCA_MARK_WAKE,             /* the peer is about to be woken */
    QHCA_MARK_KICK,             /* the device's thread is about to be woken */
    QHCA_MARK_SLEEP,            /* it is about to sleep */
    QHCA_MARK_AWAKE,            /* it has slept */
    QHCA_MARK_YIELD,            /* a vCPU yields its processor */
    QHCA_MARK_YIELDED,          /* and has it back */
    QHCA_MARK_FLUSH,            /* a frame goes to the netdev */
    QHCA_MARK_GOT,              /* a frame has come from it */
} QhcaMarkKind;

typedef struct QhcaMark QhcaMark;

typedef struct QhcaTimeline {
    /* BQL */
    char *path;                 /* of the file to write; NULL: none */
    /* Between threads, without a lock */
    bool on;
    uint32_t num;               /* marks made */
    QhcaMark *mark;             /* the newest */
} QhcaTimeline;

/* The adapter, which is the physical function to QEMU. */
struct QhcaState {
    PCIDevice parent_obj;
    QhcaFunction pf;

    /* Set at realize, then constant. */
    struct qhca_config cfg;
    NICConf conf;
    uint16_t sriov_vfs;
    struct qhca_config vf_cfg;  /* limits of each virtual function */
    uint64_t vf_devmem_size;
    char *vf_block_masks;       /* the property */
    uint16_t vf_blocks[QHCA_MAX_VFS];   /* its masks; 0: all blocks */
    uint32_t inline_budget;
    uint32_t thread_budget;
    uint32_t poll_max_us;
    uint32_t poll_idle_us;
    uint32_t await_max_us;
    uint32_t slice_us;
    uint32_t yield_max_us;
    uint32_t tx_ring_size;
    uint32_t rx_ring_size;
    VMChangeStateEntry *vm_change;
    Notifier wakeup;
    QTAILQ_ENTRY(QhcaState) next;

    /* BQL */
    NICState *nic;
    bool delivering;            /* qhca_deliver() is on the stack */
    bool in_engine;             /* the holder of the BQL is in the engine */
    uint64_t resets_pending;    /* functions reset while that was so */
    bool tx_stalled;            /* the back end will call us when it can */
    bool rx_stalled;            /* we refused a frame and owe a flush */
    QEMUBH *bh;                 /* scheduled by any thread */
    QhcaReads reads;
    bool loading;               /* migration: the state is on its way */
    uint8_t *image;             /* while it is saved or loaded */
    uint32_t image_len;
    QEMUTimer *stall_timer;     /* QEMU_CLOCK_REALTIME, while tx_stalled */

    /* engine_lock */
    QemuMutex engine_gate;
    QemuMutex engine_lock;
    struct qhca_hca *hca;       /* NULL: not realized */
    struct qhca_inject_config inject;   /* before there is an engine */
    struct qhca_fetch_cost fetch_cost;  /* likewise */
    bool running;               /* the VM is */
    bool started;               /* it has been since the device came */
    bool more;                  /* result of the last slice */
    bool tx_starved;            /* tx_reserve failed since qhca_tx_ready() */
    bool own_mac_warned;
    /* Functions by GVMI.  Written with the BQL as well, so either will do. */
    QhcaFunction *fn[QHCA_MAX_FUNCTIONS];
    /*
     * DMA of a function passes a vIOMMU, whose faults take the BQL: the thread
     * is idle.
     */
    bool dma_iommu;
    QEMUTimer *timer;           /* QEMU_CLOCK_VIRTUAL: stops with the VM */
    uint64_t timer_at;          /* the time it is armed for, or QHCA_NEVER */
    uint64_t deadline;          /* of the engine, for a thread that keeps the time */
    uint64_t trace_checked;

    /* Between threads, without a lock */
    uint64_t irq_functions;     /* those with vectors raised */
    unsigned int waiters;       /* for engine_lock, in qhca_lock() */
    QhcaRing tx;                /* engine_lock produces, BQL consumes */
    QhcaRing rx;                /* BQL produces, engine_lock consumes */
    QemuThread thread;
    QemuEvent wake;
    bool kicked;
    bool quit;
    QhcaYields doorbell_yields;
    QhcaYields poll_yields;

    QhcaLink link;
    QhcaAwait await;
    QhcaTimeline timeline;

    QemuMutex doorbell_lock;
    /* Callers fill one array while the engine works on the other. */
    QhcaDoorbell doorbell[2][QHCA_MAX_DOORBELLS];
    uint32_t doorbell_side;     /* which one fills */
    uint32_t num_doorbells;     /* in it; read without the lock as a hint */

    QhcaStats stats;
};

/* A virtual function, which is a PCI device to QEMU. */
struct QhcaVfState {
    PCIDevice parent_obj;
    QhcaFunction fn;
};

/* qhca-thread.c */

/*
 * Enter the engine, after at most one slice of another thread.  Returns false
 * without the lock if there is no engine (any more), or if this thread is in
 * the engine already.
 */
bool qhca_enter(QhcaState *s);
/* As qhca_enter(), but wait no longer than waking a thread would take. */
bool qhca_enter_soon(QhcaState *s);
/* Drop the lock, deliver the output, and have the rest of the work done. */
void qhca_leave(QhcaState *s);
void qhca_put(QhcaState *s);
/* Only drop the lock; the thread serves doorbells deferred meanwhile. */
void qhca_leave_undone(QhcaState *s);
/*
 * Does this access come from within a call of the device's own?  The caller
 * must not enter the engine then.
 */
bool qhca_nested(QhcaState *s);
/* Take the lock even if there is no engine. */
void qhca_lock(QhcaState *s);
/* Schedule qhca_bh(). */
void qhca_schedule(QhcaState *s);
/* Do the work of about @budget packets, deferred work included. */
void qhca_slice(QhcaState *s, unsigned int budget);
uint64_t qhca_now(QhcaState *s);
void qhca_kick(QhcaState *s);
void qhca_change_hands(QhcaState *s);       /* of the thread and the bottom half */
/*
 * Take the lock if it is free, and drop it again if there is no engine.  Both
 * say whether the caller has what it asked for.
 */
bool qhca_trylock(QhcaState *s);
bool qhca_have_engine(QhcaState *s);
/*
 * Discard undelivered doorbells and vectors of a function, and undelivered
 * frames if no other function is enabled.  With the physical function, forget what was learned of
 * programs that answer each other.  BQL and engine_lock.
 */
void qhca_drop_pending(QhcaFunction *f);
void qhca_thread_init(QhcaState *s);        /* locks: with the object */
void qhca_thread_finalize(QhcaState *s);
void qhca_thread_start(QhcaState *s);
void qhca_thread_stop(QhcaState *s);
void qhca_host_raise_irq(void *host, uint16_t gvmi, unsigned int vector);

/* What the device's thread knows of its waits; at first 0. */
typedef struct QhcaWaits {
    uint64_t poll_ns;           /* how long it polls before it sleeps */
    uint64_t frames;            /* received when it last woke */
    unsigned int skip;          /* so many waits without polls in a vCPU's place */
    unsigned int awake;         /* waits that ended without sleep since it last slept */
    int64_t since;              /* the wait that only a look at messages interrupted; or 0 */
} QhcaWaits;

/* qhca-wait.c: the device's thread, without a lock.  Returns when it is called. */
void qhca_wait(QhcaState *s, QhcaWaits *waits);

/* qhca-doorbell.c */
extern const MemoryRegionOps qhca_doorbells_ops;
/* engine_lock */
void qhca_take_doorbells(QhcaState *s, uint64_t now);
void qhca_drop_doorbells(QhcaFunction *f);

/* qhca-hint.c: a vCPU, without engine_lock */
bool qhca_yield(QhcaState *s, QhcaYields *yields, bool alone);
void qhca_hint(QhcaState *s, const QhcaDoorbell *db);                       /* DB_POLL */
bool qhca_is_alone(MemTxAttrs attrs);
/* Does anybody else want the engine, or is there an interrupt to deliver? */
bool qhca_is_wanted(QhcaState *s);
/*
 * Wait for work until a time, but not for long.  Returns whether there is some.  If it is found
 * after that time, @end becomes 0, and the next call returns false.  engine_lock
 */
bool qhca_polled_again(QhcaState *s, int64_t *end, int64_t wait_ns);

/* qhca-await.c: engine_lock */
/* How many messages of the peer has the physical function answered? */
uint64_t qhca_messages(QhcaState *s);
/* A slice of work has been done: note the time if messages came in it. */
void qhca_received(QhcaState *s);
/*
 * Will the next doorbell of a send queue wait, unless it is one that sees what happens without?
 * The BQL suffices, but then the answer is a hint.
 */
bool qhca_awaits(QhcaState *s);
bool qhca_awaits_hinted(QhcaState *s);      /* and yet a program polls: engine_lock */
/*
 * A vCPU rings the doorbell of a send queue.  Should it wait for a message afterwards, because
 * that has been seen to help?  If so qhca_await() has to follow.
 */
bool qhca_will_await(QhcaState *s);
bool qhca_await(QhcaState *s);              /* did a message come? */
void qhca_await_forget(QhcaState *s);       /* all that was learned */

/* qhca-function.c: BQL */
void qhca_function_init(QhcaFunction *f, QhcaState *s, PCIDevice *dev,
                        uint16_t gvmi, const struct qhca_config *cfg);
bool qhca_init_devmem(QhcaFunction *f, Error **errp);
void qhca_exit_devmem(QhcaFunction *f);
bool qhca_init_caps(QhcaFunction *f, Error **errp);
void qhca_exit_caps(QhcaFunction *f);
bool qhca_init_bars(QhcaFunction *f, Error **errp);
void qhca_exit_bars(QhcaFunction *f);
void qhca_function_config_write(QhcaFunction *f, uint32_t addr, uint32_t value,
                                int len);
void qhca_function_reset_hold(QhcaFunction *f);
/* Is the function in power state D0?  BQL. */
bool qhca_in_d0(PCIDevice *dev);
/* BQL and engine_lock */
void qhca_reset_function(QhcaFunction *f, QhcaReset kind);

/* qhca-migrate.c */
extern const VMStateDescription qhca_vmstate;
extern const VMStateDescription qhca_vf_vmstate;
void qhca_announce(NetClientState *nc);     /* BQL */
/* The VM stops, or runs: BQL and engine_lock */
void qhca_migrate_freeze(QhcaState *s);
void qhca_migrate_thaw(QhcaState *s);

/* qhca-vf.c: BQL */
bool qhca_vfs_init(QhcaState *s, Error **errp);
void qhca_vfs_exit(QhcaState *s);
void qhca_vf_register(void);
/* The engine follows VF Enable.  BQL and engine_lock. */
void qhca_vf_follow(QhcaFunction *f);

/* qhca-dma.c: engine_lock */
bool qhca_host_may_dma(void *host, uint16_t gvmi);
int qhca_host_dma_read(void *host, struct qhca_requester who, uint64_t addr,
                       void *buf, size_t len);
int qhca_host_dma_write(void *host, struct qhca_requester who, uint64_t addr,
                        const void *buf, size_t len);
int qhca_host_dma_write_release(void *host, struct qhca_requester who,
                                uint64_t addr, const void *buf, size_t len);
void qhca_dma_init(QhcaFunction *f);
void qhca_dma_exit(QhcaFunction *f);
void qhca_dma_reset(QhcaFunction *f);

/* qhca-net.c: BQL, unless said otherwise */
void qhca_net_init(QhcaState *s);
void qhca_net_exit(QhcaState *s);
void qhca_net_flush(QhcaState *s);
/* engine_lock */
void *qhca_host_tx_reserve(void *host, size_t len);
void qhca_host_tx_commit(void *host, size_t len);
void qhca_net_receive_pending(QhcaState *s, unsigned int frames);
/* Warn, once, of another device with this one's address. */
void qhca_net_check_own_mac(QhcaState *s);

/* qhca-link.c: BQL */
void qhca_link_class_init(ObjectClass *klass);
bool qhca_link_init(QhcaState *s, Error **errp);
void qhca_link_exit(QhcaState *s);          /* before the thread ends */
void qhca_link_free(QhcaState *s);          /* after it */
void qhca_link_finalize(QhcaState *s);      /* with the object */
void qhca_link_vm_change(QhcaState *s, bool running, RunState state);
void qhca_link_check(QhcaState *s);         /* end the link if it is lost */

/* qhca-link-frames.c: engine_lock */
void *qhca_link_reserve(QhcaState *s);
void qhca_link_commit(QhcaState *s, size_t len);
bool qhca_link_has_room(QhcaState *s);      /* for half a queue of frames */
bool qhca_link_pending(QhcaState *s);
void qhca_link_receive(QhcaState *s, unsigned int frames);
bool qhca_link_wakes_peer(QhcaState *s);
void qhca_link_polled(QhcaState *s, bool polls_on);     /* after its slice */
void qhca_link_attend(QhcaState *s);
void qhca_link_attended(QhcaState *s);
/* The device's thread, with engine_lock */
void qhca_link_events(QhcaState *s);
/* Without a lock */
int64_t qhca_link_frames_awake(QhcaState *s);
/* The device's thread, without a lock */
bool qhca_link_hinted(QhcaState *s);
bool qhca_link_called(QhcaState *s);
bool qhca_link_sleep(QhcaState *s);
/* Any thread, without a lock */
bool qhca_link_is_due(QhcaState *s);
void qhca_link_call(QhcaState *s);
void qhca_link_call_before(QhcaState *s, uint64_t deadline);
void qhca_link_wake_peer(QhcaState *s);

/* Is @buf in the slot reserved last?  engine_lock */
static inline bool qhca_link_is_room(QhcaState *s, const void *buf)
{
    return (uintptr_t)buf - (uintptr_t)s->link.room < QHCA_MAX_FRAME;
}

/* qhca-dump.c */
void qhca_dump_class_init(ObjectClass *klass);
void qhca_dump_init(QhcaState *s);
void qhca_dump_finalize(QhcaState *s);
/* engine_lock */
void qhca_dump_frame(QhcaState *s, const void *frame, size_t len);

static inline void qhca_dump(QhcaState *s, const void *frame, size_t len)
{
    if (unlikely(s->link.dump_fd >= 0)) {
        qhca_dump_frame(s, frame, len);
    }
}

/* qhca-timeline.c: any thread */
void qhca_mark_now(QhcaState *s, QhcaMarkKind what, uint64_t a, uint64_t b);
/* engine_lock: a trace point of the engine, and those that a timeline wants */
void qhca_mark_trace(QhcaState *s, enum qhca_trace_id id, uint64_t a,
                     uint64_t b, uint64_t c);
uint64_t qhca_mark_mask(QhcaState *s);
/* BQL */
void qhca_timeline_class_init(ObjectClass *klass);
void qhca_timeline_finalize(QhcaState *s);

static inline void qhca_mark(QhcaState *s, QhcaMarkKind what, uint64_t a,
                             uint64_t b)
{
    if (unlikely(qatomic_load_acquire(&s->timeline.on))) {
        qhca_mark_now(s, what, a, b);
    }
}

/* qhca-trace.c: engine_lock */
void qhca_host_trace(void *host, uint16_t gvmi, enum qhca_trace_id id,
                     uint64_t a, uint64_t b, uint64_t c, uint64_t d);
void qhca_trace_refresh(QhcaState *s);

/* qhca-pci.c: the features that functions have on the device's link */
uint64_t qhca_link_features(QhcaState *s);

/* qhca-props.c */
void qhca_props_class_init(ObjectClass *klass);
void qhca_props_instance_init(QhcaState *s);
bool qhca_props_check(QhcaState *s, Error **errp);

/* qhca-monitor.c: BQL */
void qhca_monitor_add(QhcaState *s);
void qhca_monitor_remove(QhcaState *s);
void qhca_monitor_register(void);

#endif /* QHCA_DEV_H */
