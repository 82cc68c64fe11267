/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Engine internals: the struct of one HCA and the seams between its parts.
 * Each part's own header documents the part; here is what they share.
 *
 *   regs.c cmd.c            registers, command queue
 *   table.c cache.c         tables in host memory, bounded caches of them
 *   pte.c mem.c key.c       entries, access by key, what changes keys
 *   pool.c                  pool bank
 *   qbuf.c                  queue buffers and records
 *   eq.c cq.c               events and completions
 *   wire.c inject.c eth.c   frames out and in, loopback, faults, Ethernet
 *   port.c                  GIDs, multicast members, port settings
 *   flow.c raw.c            flow rules, raw packet QPs
 *   qp.c srq.c              contexts, states, commands of QPs and SRQs
 *   pkt.c icrc.c            packet codec, invariant CRC
 *   sched.c linger.c        which QP works next, timers; staying at its queue
 *   cost.c                  what a miss costs
 *   requester.c responder.c datagram.c   transport
 *   fault.c                 page faults: who waits, events, resume
 */
#ifndef HCA_CORE_HCA_H
#define HCA_CORE_HCA_H

#include "qhca.h"
#include "bytes.h"
#include "mem/cache.h"

/* Parts own their state; they are embedded so that nothing is global. */
#include "mem/table.h"
#include "cmd.h"
#include "regs.h"
#include "mem/pt.h"
#include "mem/mem.h"
#include "mem/pool.h"
#include "mem/key.h"
#include "queue/qbuf.h"
#include "queue/eq.h"
#include "queue/cq.h"
#include "wire/ether.h"
#include "wire/transmit.h"
#include "wire/inject.h"
#include "wire/eth.h"
#include "wire/flow.h"
#include "wire/port.h"
#include "transport/qp.h"
#include "transport/fault.h"
#include "queue/srq.h"
#include "transport/sched.h"
#include "transport/linger.h"
#include "mem/cost.h"

struct qhca_hca {
	struct qhca_config cfg;
	struct qhca_host_ops ops;
	void *host;
	uint64_t now;			/* of the call being served */
	uint64_t reset_time;
	uint64_t trace_mask;
	uint64_t counter[QHCA_NUM_COUNTERS];

	uint32_t status;		/* QHCA_REG_STATUS */
	uint32_t control;
	uint32_t fatal_info;
	bool link_up;
	bool initialised;		/* INIT_HCA done */
	uint32_t init_flags;		/* QHCA_INIT_* */
	uint64_t features;		/* QHCA_FEAT_* of this function */
	unsigned int turn;		/* whose work qhca_run() does first */
	bool entered;			/* a call of the host's is being served */
	uint8_t late;			/* HCA_LATE_*: what came meanwhile */

	struct hca_regs regs;
	struct hca_cmdq cmdq;
	struct hca_tables tables;
	struct hca_mem mem;		/* protection and translation caches */
	struct hca_pool pool;		/* pool bank */
	struct hca_eqs eqs;
	struct hca_cqs cqs;
	struct hca_srqs srqs;
	struct hca_qps qps;
	struct hca_sched sched;
	struct hca_linger linger;	/* at send queues that ran dry */
	struct hca_cost cost;		/* of misses, and the stall */
	struct hca_wire wire;
	struct hca_inject inject;
	struct hca_eth eth;
	struct hca_flows flows;
	struct hca_ports port;
};

/* What the host asked for in a callback, to be done when the call returns. */
#define HCA_LATE_RESET		0x01u
#define HCA_LATE_LINK		0x02u	/* to UP, or not */
#define HCA_LATE_UP		0x04u
#define HCA_LATE_FATAL		0x08u

/*
 * Every function of qhca.h that changes anything begins with this and ends with
 * hca_leave() (life.h).  false: the host has called from a callback, and
 * nothing may be done.
 */
static inline bool hca_enter(struct qhca_hca *hca, uint64_t now)
{
	if (hca->entered)
		return false;
	hca->entered = true;
	hca->now = now;
	return true;
}

static inline void hca_count(struct qhca_hca *hca, enum qhca_counter id)
{
	hca->counter[id]++;
}

static inline void hca_count_n(struct qhca_hca *hca, enum qhca_counter id,
			       uint64_t n)
{
	hca->counter[id] += n;
}

static inline void hca_trace(struct qhca_hca *hca, enum qhca_trace_id id,
			     uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	if (hca->trace_mask >> id & 1)
		hca->ops.trace(hca->host, id, a, b, c, d);
}

/* Dead until reset; posts QHCA_EVENT_DEVICE_FATAL if EQ 0 still can. */
void hca_fatal(struct qhca_hca *hca, enum qhca_fatal cause, uint32_t info);

/* ... or about to be reset: every loop looks at this. */
static inline bool hca_is_dead(const struct qhca_hca *hca)
{
	return hca->status & QHCA_STATUS_FATAL || hca->late & HCA_LATE_RESET;
}

static inline int hca_dma_read(struct qhca_hca *hca, uint64_t addr, void *buf,
			       size_t len)
{
	return hca->ops.dma_read(hca->host, hca->cfg.gvmi, addr, buf, len);
}

static inline int hca_dma_write(struct qhca_hca *hca, uint64_t addr,
				const void *buf, size_t len)
{
	return hca->ops.dma_write(hca->host, hca->cfg.gvmi, addr, buf, len);
}

static inline int hca_dma_write_release(struct qhca_hca *hca, uint64_t addr,
					const void *buf, size_t len)
{
	return hca->ops.dma_write_release(hca->host, hca->cfg.gvmi, addr, buf,
					  len);
}

#endif /* HCA_CORE_HCA_H */
