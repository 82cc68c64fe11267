/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Engine internals: the state of the adapter and of a PCI function, and what
 * every part uses: counters, traces, DMA, death.  The header of each part
 * documents the part; Documentation/engine.rst says what lies in which folder.
 *
 * A function that concerns one PCI function takes struct hca_fn, one that
 * concerns what all PCI functions share takes struct hca.
 */
#ifndef HCA_CORE_HCA_H
#define HCA_CORE_HCA_H

#include "qhca.h"

struct hca;
struct hca_fn;

#include "bytes.h"
#include "compiler.h"

/* Parts own their state; they are embedded so that nothing is global. */
#include "mem/caches.h"
#include "mem/table.h"
#include "cmd.h"
#include "regs.h"
#include "vf.h"
#include "mem/protection_table.h"
#include "mem/mem.h"
#include "mem/pool.h"
#include "mem/key.h"
#include "mem/stage2.h"
#include "queue/qbuf.h"
#include "queue/eq.h"
#include "queue/cq.h"
#include "wire/rss.h"
#include "queue/eth.h"
#include "wire/ether.h"
#include "wire/tso.h"
#include "wire/transmit.h"
#include "wire/peers.h"
#include "wire/switch.h"
#include "wire/inject.h"
#include "wire/rate.h"
#include "wire/flow.h"
#include "wire/port.h"
#include "transport/qp.h"
#include "transport/withheld.h"
#include "transport/paging.h"
#include "queue/srq.h"
#include "transport/sched.h"
#include "transport/linger.h"
#include "transport/counter_set.h"
#include "mem/cost.h"

#define HCA_MAX_FNS	(QHCA_MAX_VFS + 1)

/**
 * struct hca - the adapter: what its PCI functions share.
 * @active: the functions that may have commands, held events, timers of CQs or Ethernet
 *	frames to be served, bit by GVMI
 * @late_fns: the functions that have `late`, bit by GVMI
 * @fn: functions by GVMI; NULL: the host has created none.  fn[0] is the physical
 *	function.
 * @gvm: GVM identifier table, by GVMI; the first row is not used
 * @s2_unposted: the functions with stage-2 events to be written, bit by GVMI
 */
struct hca {
	struct qhca_host_ops ops;
	void *host;
	uint64_t now;			/* of the call being served: the engine's time */
	uint64_t clock_offset;		/* added to the host's time: freeze.c */
	uint64_t trace_mask;
	bool link_up;
	bool cheap_timers;		/* qhca_timers_are_cheap() */
	bool entered;			/* a call of the host's is being served */
	bool frozen;			/* ... and it is the time up to qhca_thaw() */
	uint8_t late;			/* HCA_LATE_*: what came meanwhile */
	uint16_t num_vfs;		/* the highest GVMI that exists */
	uint64_t late_fns;
	uint64_t active;
	unsigned int turn;		/* which worker of qhca_run() is first */
	uint16_t cmd_turn, eth_turn;	/* ... and which function */

	struct hca_caches cache;
	struct hca_cost cost;		/* of misses, and the stall */
	struct hca_wire wire;
	struct hca_bundles bundles;
	struct hca_switch sw;
	struct hca_inject inject;
	struct hca_sched sched;		/* QPs with work, and timers */
	struct hca_linger linger;	/* at empty send queues */
	struct hca_rates rates;
	struct hca_fn *fn[HCA_MAX_FNS];
	struct hca_gvm gvm[HCA_MAX_FNS];
	uint64_t s2_unposted;
};

/**
 * struct hca_fn - one PCI function: what software sees as a device of its own.
 */
struct hca_fn {
	struct hca *hca;
	struct qhca_config cfg;		/* its limits, MAC and GVMI */
	struct hca_vf vf;
	bool enabled;			/* PCI has it: see qhca_vf_enable() */
	uint32_t generation;		/* counts resets */
	uint64_t features;		/* QHCA_FEAT_*: what software may use */
	uint64_t offers;		/* features from the next reset on */
	uint64_t counter[QHCA_NUM_COUNTERS];
	uint64_t past[QHCA_NUM_COUNTERS]; /* of a VF, before its last reset */
	struct hca_counter_sets sets;
	uint64_t answered;		/* qhca_answered() */
	uint64_t reset_time;

	uint32_t status;		/* QHCA_REG_STATUS */
	uint32_t control;
	uint32_t fatal_info;
	bool initialised;		/* INIT_HCA done */
	uint32_t init_flags;		/* QHCA_INIT_* */
	uint8_t late;			/* HCA_LATE_*: what came meanwhile */
	bool restore;			/* contexts are to be read: hca_restore() */
	struct hca_withheld withheld;	/* ... and these to be written before */

	struct hca_regs regs;
	struct hca_cmdq cmdq;
	struct hca_tables tables;
	struct hca_cache_user cache[QHCA_NUM_CACHE_IDS]; /* its part in hca->cache */
	struct hca_mem mem;		/* of the access being made */
	struct hca_pool pool;		/* pool bank */
	struct hca_eqs eqs;
	struct hca_cqs cqs;
	struct hca_srqs srqs;
	struct hca_qps qps;
	struct hca_fnsched sched;	/* its part in hca->sched */
	struct hca_rate rate;
	struct hca_eth eth;
	struct hca_flows flows;
	struct hca_peers peers;		/* that take bundles */
	struct hca_ports port;
	struct hca_stage2 s2;
};

/* What the host holds: an adapter with its physical function.  VFs are on the heap. */
struct qhca_hca {
	struct hca hca;
	struct hca_fn pf;
};

/*
 * What the end of the call has to do: most of it the host asked for in a
 * callback.  Of a function, and of the adapter.
 */
#define HCA_LATE_RESET		0x01u
#define HCA_LATE_PCI		0x80u	/* with RESET: it is FLR or a PCI reset */
#define HCA_LATE_DISABLE	0x20u	/* after RESET: VF Enable is clear */
#define HCA_LATE_ENABLE		0x40u	/* after RESET: VF Enable is set */
#define HCA_LATE_FATAL		0x08u
#define HCA_LATE_DIED		0x10u	/* report what hca_fatal() recorded */

#define HCA_LATE_LINK		0x02u	/* to UP, or not */
#define HCA_LATE_UP		0x04u

/* The function whose GVMI is in a tag or a reference, so that it exists. */
static inline struct hca_fn *hca_fn_of(const struct hca *hca, uint16_t gvmi)
{
	return hca->fn[gvmi];
}

/* The physical function. */
static inline struct hca_fn *hca_pf(const struct hca *hca)
{
	return hca->fn[0];
}

/* The function that the host calls @gvmi; NULL: not created, or not enabled. */
static inline struct hca_fn *hca_fn_find(const struct hca *hca, uint16_t gvmi)
{
	struct hca_fn *fn = gvmi < HCA_MAX_FNS ? hca->fn[gvmi] : NULL;

	return fn && fn->enabled ? fn : NULL;
}

/* May the function send and receive at all? */
static inline bool hca_fn_linked(const struct hca_fn *fn)
{
	return fn->vf.link != QHCA_VF_LINK_DOWN &&
	       !(fn->hca->sw.vfs_kept_off && fn->cfg.gvmi);
}

/* Does its bus let the function make DMA? */
static inline bool hca_fn_may_dma(const struct hca_fn *fn)
{
	const struct hca *hca = fn->hca;

	return !hca->ops.may_dma || hca->ops.may_dma(hca->host, fn->cfg.gvmi);
}

/* Something has come that hca->active is about. */
static inline void hca_fn_wake(struct hca_fn *fn)
{
	fn->hca->active |= 1ull << fn->cfg.gvmi;
}

/* The end of the call has to do @what (HCA_LATE_*) for @fn. */
static inline void hca_fn_later(struct hca_fn *fn, uint8_t what)
{
	fn->late |= what;
	fn->hca->late_fns |= 1ull << fn->cfg.gvmi;
}

/*
 * Every function of qhca.h that changes anything begins with this and ends with
 * hca_leave() (life.h).  false: the host has called from a callback, and
 * nothing may be done.
 */
static inline bool hca_enter(struct hca *hca, uint64_t now)
{
	if (hca->entered)
		return false;
	hca->entered = true;
	hca->now = now + hca->clock_offset;
	return true;
}

/* The same at the time of the last call. */
static inline bool hca_enter_again(struct hca *hca)
{
	return hca_enter(hca, hca->now - hca->clock_offset);
}

static inline void hca_count(struct hca_fn *fn, enum qhca_counter id)
{
	fn->counter[id]++;
}

static inline void hca_count_n(struct hca_fn *fn, enum qhca_counter id,
			       uint64_t n)
{
	fn->counter[id] += n;
}

static inline void hca_trace(struct hca_fn *fn, enum qhca_trace_id id,
			     uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	if (fn->hca->trace_mask >> id & 1)
		fn->hca->ops.trace(fn->hca->host, fn->cfg.gvmi, id, a, b, c, d);
}

/*
 * The function is dead, or the end of this call resets it: every loop looks at
 * this.
 */
static inline bool hca_is_dead(const struct hca_fn *fn)
{
	return fn->status & QHCA_STATUS_FATAL || fn->late & HCA_LATE_RESET;
}

/*
 * The function is dead until reset.  This only records the first cause: the
 * error may come from within an EQ, or from a cache in the middle of an
 * eviction.  hca_leave() reports it to software when the call ends.
 */
static inline void hca_fatal(struct hca_fn *fn, enum qhca_fatal cause,
			     uint32_t info)
{
	if (hca_is_dead(fn))
		return;
	fn->status |= QHCA_STATUS_FATAL |
		      QHCA_PUT(QHCA_STATUS_FATAL_CAUSE, (uint32_t)cause);
	fn->fatal_info = info;
	hca_fn_later(fn, HCA_LATE_DIED);
	hca_trace(fn, QHCA_TRACE_FATAL, cause, info, 0, 0);
}

/* Has the function been given memory, so that it may make DMA on its own account? */
static inline bool hca_fn_busy(const struct hca_fn *fn)
{
	return fn->initialised || fn->status & QHCA_STATUS_ENABLED;
}

/*
 * DMA to machine addresses, in the name of a function.  Only stage 2 (mem/stage2.h)
 * knows these of a function whose mode is not HCA_S2_OFF.
 */
static inline int hca_machine_read(struct hca_fn *fn, uint64_t addr, void *buf,
				   size_t len)
{
	const struct hca *hca = fn->hca;
	struct qhca_requester who = { fn->cfg.gvmi, fn->s2.uplink_attr };

	return hca->ops.dma_read(hca->host, who, addr, buf, len);
}

static inline int hca_machine_write(struct hca_fn *fn, uint64_t addr,
				    const void *buf, size_t len)
{
	const struct hca *hca = fn->hca;
	struct qhca_requester who = { fn->cfg.gvmi, fn->s2.uplink_attr };

	return hca->ops.dma_write(hca->host, who, addr, buf, len);
}

static inline int hca_machine_write_release(struct hca_fn *fn, uint64_t addr,
					    const void *buf, size_t len)
{
	const struct hca *hca = fn->hca;
	struct qhca_requester who = { fn->cfg.gvmi, fn->s2.uplink_attr };

	return hca->ops.dma_write_release(hca->host, who, addr, buf, len);
}

/*
 * DMA to bus addresses that the device needs for itself: all but payload.  With
 * stage 2 the memory must be pinned, or the function dies.
 */
static inline int hca_dma_read(struct hca_fn *fn, uint64_t addr, void *buf,
			       size_t len)
{
	return fn->s2.mode ? hca_s2_read(fn, addr, buf, len) :
			     hca_machine_read(fn, addr, buf, len);
}

/* The same for the monitor, which must change nothing. */
static inline int hca_dma_peek(struct hca_fn *fn, uint64_t addr, void *buf,
			       size_t len)
{
	return fn->s2.mode ? hca_s2_peek(fn, addr, buf, len) :
			     hca_machine_read(fn, addr, buf, len);
}

static inline int hca_dma_write(struct hca_fn *fn, uint64_t addr,
				const void *buf, size_t len)
{
	return fn->s2.mode ? hca_s2_write(fn, addr, buf, len, false) :
			     hca_machine_write(fn, addr, buf, len);
}

static inline int hca_dma_write_release(struct hca_fn *fn, uint64_t addr,
					const void *buf, size_t len)
{
	return fn->s2.mode ? hca_s2_write(fn, addr, buf, len, true) :
			     hca_machine_write_release(fn, addr, buf, len);
}

#endif /* HCA_CORE_HCA_H */
