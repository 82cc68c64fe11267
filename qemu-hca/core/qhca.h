/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * qhca engine: the HCA with its PCI functions, without its host.
 *
 * The engine is plain C11.  It reaches its host only through struct
 * qhca_host_ops, receives the time with every call, keeps no global state and
 * never blocks.  One caller at a time: the caller holds whatever lock makes
 * that true, and no callback should call back into the engine.  A guest can try
 * to make the host do that, by a DMA, an interrupt or a frame of one function
 * that ends as a write to a register of this one.  The engine survives: see
 * qhca_is_entered().
 *
 * Times are nanoseconds of a clock that does not go backwards, except while the engine is
 * frozen: see qhca_thaw().
 */
#ifndef QHCA_H
#define QHCA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef QHCA_HW_PLAIN_TYPES
#define QHCA_HW_PLAIN_TYPES
#endif
#include "qhca/qhca_hw.h"

/*
 * An adapter.  It has a physical function, whose GVMI is 0, and the virtual functions
 * that qhca_vf_create() adds.  An entry that concerns one function names it by its
 * GVMI.  Of a function that does not exist or is not enabled, registers read as all
 * ones and counters as zero, and nothing else has an effect.
 */
struct qhca_hca;

#define QHCA_NEVER		UINT64_MAX
#define QHCA_MAX_FRAME		9216	/* bytes, Ethernet header included */
/* Payload of a bundle, at most: the lengths of IP and UDP have 16 bits. */
#define QHCA_MAX_BUNDLE		(15u * 4096)
/* ... and its frame: Ethernet header, tag and the longest IP packet */
#define QHCA_MAX_BUNDLE_FRAME	(14 + 4 + 65535u)

/* The trace points; QEMU's trace events have the same names. */
enum qhca_trace_id {
	QHCA_TRACE_RESET,		/* - */
	QHCA_TRACE_FATAL,		/* cause, info */
	QHCA_TRACE_CMD,			/* opcode, index, param, status */
	QHCA_TRACE_DOORBELL,		/* page, offset, value */
	QHCA_TRACE_DOORBELL_IGNORED,	/* page, offset, value */
	QHCA_TRACE_EVENT,		/* eqn, type, number */
	QHCA_TRACE_COMPLETION,		/* cqn, qpn, opcode, status */
	QHCA_TRACE_QP_STATE,		/* qpn, from, to */
	QHCA_TRACE_TX,			/* qpn, wire opcode, psn, bytes */
	QHCA_TRACE_RX,			/* qpn, wire opcode, psn, bytes */
	QHCA_TRACE_NAK,			/* qpn, syndrome, psn */
	QHCA_TRACE_RX_NAK,		/* qpn, syndrome, psn */
	QHCA_TRACE_TIMEOUT,		/* qpn, psn, retries left */
	QHCA_TRACE_RX_DROP,		/* qpn, counter */
	QHCA_TRACE_PROTECTION,		/* key, address, length, reason */
	QHCA_TRACE_CACHE_MISS,		/* cache, index */
	QHCA_TRACE_INVALIDATE,		/* key index, flags */
	QHCA_TRACE_FAULT,		/* qpn, token, address, QHCA_FAULT_* */
	QHCA_TRACE_RESUME,		/* qpn, token, QHCA_RESUME_*, ns since */
	QHCA_TRACE_QP_PART,		/* qpn, enum qhca_qp_part, from, to */
	QHCA_NUM_TRACE_IDS
};

/**
 * struct qhca_requester - who makes a DMA request.
 * @gvmi: function; 0 also for tables of stage 2
 * @uplink_attr: what SET_GVM has set for it, for an IOMMU outside the device
 */
struct qhca_requester {
	uint16_t gvmi;
	uint16_t uplink_attr;
};

/**
 * struct qhca_host_ops - what the engine asks of its host.
 * Addresses are bus addresses of function @who.gvmi, or what stage 2 has made of
 * them: machine addresses, that is bus addresses that the host domain's software
 * has mapped for this function.  DMA of any length reaches RAM only: anything else,
 * device registers included, is an error (a guest must not make the engine call
 * itself).
 *
 * @dma_read: copy from memory; 0 or -1.  Acquire: later reads see what was
 *	written before the value read.  An aligned 4- or 8-byte access is single-copy
 *	atomic.
 * @dma_write: copy to memory; 0 or -1.  Same atomicity.
 * @dma_write_release: like @dma_write, but the last 4 bytes become visible
 *	after all the rest and after every earlier write.  An aligned 8-byte
 *	access becomes visible as a whole, after every earlier write.
 * @raise_irq: MSI-X vector; must not call back synchronously into the engine.
 * @tx_reserve: room for a frame of @len bytes, or NULL when the link cannot
 *	take one now; the host then calls qhca_tx_ready() later.
 * @tx_commit: send the frame last reserved; @len may be less than reserved.
 *	A reservation that is not committed is dropped by the next one.
 * @may_dma: optional; false: the function's bus lets it make no DMA, so the machine
 *	stops without its writes, and they travel in the image.  The host calls
 *	qhca_may_dma() when that ends.
 * @trace: optional; called only for ids enabled by qhca_trace_mask().
 */
struct qhca_host_ops {
	int (*dma_read)(void *host, struct qhca_requester who, uint64_t addr,
			void *buf, size_t len);
	int (*dma_write)(void *host, struct qhca_requester who, uint64_t addr,
			 const void *buf, size_t len);
	int (*dma_write_release)(void *host, struct qhca_requester who,
				 uint64_t addr, const void *buf, size_t len);
	void (*raise_irq)(void *host, uint16_t gvmi, unsigned int vector);
	void *(*tx_reserve)(void *host, size_t len);
	void (*tx_commit)(void *host, size_t len);
	bool (*may_dma)(void *host, uint16_t gvmi);
	void (*trace)(void *host, uint16_t gvmi, enum qhca_trace_id id,
		      uint64_t a, uint64_t b, uint64_t c, uint64_t d);
};

struct qhca_geometry {
	uint16_t sets;			/* powers of two */
	uint16_t blocks;
};

/**
 * struct qhca_config - limits of a function, fixed at creation.  log_* are
 * base-2 logarithms of counts.  qhca_config_default() fills in all of them.
 */
struct qhca_config {
	uint8_t mac[6];
	uint16_t gvmi;			/* the engine's to set */
	uint8_t log_max_pt, log_max_qp, log_max_cq, log_max_srq, log_max_eq;
	uint8_t log_max_wq_depth, log_max_cq_depth, log_max_eq_depth;
	uint16_t num_vectors;
	uint16_t num_gids;
	uint32_t num_db_pages;
	uint16_t max_pool_blocks;
	uint16_t max_pool_keys;
	uint16_t max_mcast_members;
	uint16_t max_flows;		/* 0: no raw packet QPs; to QHCA_MAX_FLOWS */
	struct qhca_geometry cache_max[QHCA_NUM_CACHES];
	struct qhca_geometry cache_default[QHCA_NUM_CACHES];
	struct qhca_geometry s2_max, s2_default;	/* of the stage-2 cache */
	uint32_t link_speed;		/* units of 100 Mb/s */
	uint64_t features;		/* mask; default: all that exist */
	void *devmem;			/* bytes of BAR 4, owned by the host */
	size_t devmem_size;
	uint64_t seed;			/* of the fault injector */
	uint64_t secret;		/* of the host, whom peers must not imitate */
	bool rxe_flush;			/* ICRC of FLUSH as Soft-RoCE has it */
	/* Mask of the blocks that it may fill, unless SET_VF names others; 0: all. */
	uint16_t vf_blocks;
	/* Of the PF: the payload that a frame may have for peers that agree, bytes; 0: none. */
	uint32_t max_bundle;
};

/*
 * Frames with several packets that the adapter has sent and received, the messages that
 * it has sent to agree on them, and the packets of RoCE that it has received in whatever frames.
 */
struct qhca_bundles {
	uint64_t sent, received, messages, packets_received;
	uint64_t large_sent, large_received;	/* several segments of TCP in one frame */
};

void qhca_config_default(struct qhca_config *cfg);

/*
 * Make an HCA with its physical function in the reset state.  NULL when @cfg is
 * not acceptable or memory is short, with a sentence in @err saying which field
 * and why; it calls the field what QEMU's user calls it (log-max-qp, vectors).
 * @ops is copied; @cfg is copied.
 */
struct qhca_hca *qhca_create(const struct qhca_config *cfg,
			     const struct qhca_host_ops *ops, void *host,
			     char *err, size_t err_len);
void qhca_destroy(struct qhca_hca *hca);

/*
 * Add virtual function @gvmi, 1 to QHCA_MAX_VFS, with limits, MAC and device memory of
 * its own.  It is not enabled, and exists until qhca_destroy().  To be called before
 * software uses the adapter, and once for each @gvmi.  false, with a sentence in @err, as
 * for qhca_create().
 */
bool qhca_vf_create(struct qhca_hca *hca, uint16_t gvmi,
		    const struct qhca_config *cfg, char *err, size_t err_len);
/*
 * PCI's VF Enable.  A function that ceases to be enabled is reset, and one that is
 * enabled is in its reset state.
 */
void qhca_vf_enable(struct qhca_hca *hca, uint16_t gvmi, bool enabled,
		    uint64_t now);

/*
 * Is the engine inside a call, so that this is one of its callbacks?  What the host
 * calls then does nothing now.  A reset (by a call or a register), a change
 * of the link and qhca_inject_fatal() take effect when the call they came in
 * returns, and a reset makes that call do no more than it has to.  Other writes of
 * registers, doorbells and frames are lost, as on a device that is too busy;
 * qhca_run() says that there is more.  Reading registers is always possible.
 */
bool qhca_is_entered(const struct qhca_hca *hca);

/* Device reset: forget everything but configuration and link state. */
void qhca_reset(struct qhca_hca *hca, uint16_t gvmi, uint64_t now);
/*
 * FLR or PCI reset.  That of the physical function forgets what SET_VF has laid down,
 * and keeps virtual functions off the network until INIT_HCA.
 */
void qhca_pci_reset(struct qhca_hca *hca, uint16_t gvmi, uint64_t now);

/* BAR 0 below QHCA_REG_END; other offsets read as zero and ignore writes. */
uint32_t qhca_reg_read(struct qhca_hca *hca, uint16_t gvmi, uint32_t offset,
		       uint64_t now);
void qhca_reg_write(struct qhca_hca *hca, uint16_t gvmi, uint32_t offset,
		    uint32_t value, uint64_t now);

/* A 64-bit write to BAR 2.  Bounded, a context fetch at most; qhca_run() does the rest. */
void qhca_doorbell(struct qhca_hca *hca, uint16_t gvmi, uint32_t page,
		   uint32_t offset, uint64_t value, uint64_t now);

/*
 * QHCA_DB_POLL says that a program polls a CQ and finds nothing.  The engine itself has no
 * use for it: the host may do the device's work now.  Is there really nothing for the
 * program?  @page and @value are those of the write.  false also if it is not known: the
 * CQ's context is not in the cache, or the doorbell would be ignored.  Locking: as
 * qhca_doorbell().
 */
bool qhca_polls_in_vain(struct qhca_hca *hca, uint16_t gvmi, uint32_t page,
			uint64_t value);

/*
 * A frame from the wire, without FCS.  Handled before return; the engine keeps
 * no reference.  Frames longer than qhca_max_frame() are dropped and counted.
 */
void qhca_rx_frame(struct qhca_hca *hca, const uint8_t *frame, size_t len,
		   uint64_t now);
/* The longest frame that the engine takes, bytes. */
size_t qhca_max_frame(const struct qhca_hca *hca);
/*
 * The same for a frame in memory that its sender may change at any time.  The engine reads
 * each header once, and the payload of a packet that belongs to a QP where it lies.
 */
void qhca_rx_shared(struct qhca_hca *hca, const uint8_t *frame, size_t len,
		    uint64_t now);
/*
 * Does it cost the host little to be called at a deadline (qhca_run_result), since it waits
 * in a thread of the device's?  The engine then looks sooner where software may have posted.
 */
void qhca_timers_are_cheap(struct qhca_hca *hca, bool cheap);
/*
 * The room that tx_reserve gives is memory which the other end of the link can read and
 * write, or is not.  While the device has virtual functions, frames are then built elsewhere
 * and copied when they are sent to the link, so that the other end sees no frame that stays
 * in the device.
 */
void qhca_link_is_shared(struct qhca_hca *hca, bool shared);
/*
 * The link is memory, in which nothing can be damaged on the way, and its other end agrees:
 * packets go without ICRC from now on, that is with 0 in its place, and such packets are
 * accepted.  Frames come through qhca_rx_shared() then.  Packets that stay in the device, and
 * those that the injector may damage, have an ICRC all the same.
 */
void qhca_link_without_icrc(struct qhca_hca *hca, bool without);
/*
 * Put the ICRC into a packet that came or went without; other frames stay as they are, and
 * all do on a link whose packets have one.
 */
void qhca_fill_icrc(const struct qhca_hca *hca, uint8_t *frame, size_t len);
/* Could an Ethernet frame be received now?  (flow control of the host's link) */
bool qhca_can_receive(const struct qhca_hca *hca);
struct qhca_bundles qhca_query_bundles(const struct qhca_hca *hca);
/* tx_reserve would succeed again. */
void qhca_tx_ready(struct qhca_hca *hca, uint64_t now);
void qhca_set_link(struct qhca_hca *hca, bool up, uint64_t now);

struct qhca_run_result {
	bool more;		/* work is left: call again soon */
	uint64_t deadline;	/* else call again at this time; QHCA_NEVER */
};
/*
 * Do work: commands, doorbells, timers, transmission; about @budget packets at
 * most (a command counts as one).
 */
struct qhca_run_result qhca_run(struct qhca_hca *hca, uint64_t now,
				unsigned int budget);

/*
 * The machine has been stopped: what the device keeps of memory is written there, and no
 * callback is called any more until qhca_thaw().  A command between two slices is
 * finished.  Meanwhile the engine behaves as in qhca_is_entered(): a reset, a change of
 * the link and qhca_inject_fatal() take effect with qhca_thaw(); other writes of
 * registers and doorbells are lost, which a stopped machine does not make; frames
 * are lost, and qhca_can_receive() says so.  qhca_run() does nothing, and has nothing to
 * do.  false, with a sentence in @err: the engine is frozen, or inside a call.
 */
bool qhca_freeze(struct qhca_hca *hca, uint64_t now, char *err, size_t err_len);
/*
 * The machine goes on.  The engine's clock has stood still: timers have as much left as
 * they had, whatever @now is, and times continue from it.  Nothing happens to an
 * engine that is not frozen.
 */
void qhca_thaw(struct qhca_hca *hca, uint64_t now);
bool qhca_is_frozen(const struct qhca_hca *hca);

/*
 * The state of a frozen engine, but for what is in the guest's memory and the host's
 * (device memory, traces, cost of misses): bytes on the heap, which the caller frees, and
 * which are the same on any host.  Their number is bounded by the configuration.  It may be called
 * any number of times.  NULL, with a sentence in @err: not frozen, or memory is short.
 */
void *qhca_save(struct qhca_hca *hca, size_t *len, char *err, size_t err_len);
/*
 * Take over such a state, instead of the present one.  The adapter has the same
 * functions and limits, and is frozen afterwards.  qhca_thaw() reads contexts from the guest's memory,
 * which is there by then, and the host reports the link as it is here (qhca_set_link()).
 * false, with a sentence in @err: the image is refused, and nothing has changed.  If
 * memory gets short in the middle, the adapter is as after its creation, and frozen.
 */
bool qhca_load(struct qhca_hca *hca, const void *image, size_t len, char *err,
	       size_t err_len);
/*
 * A function for which @may_dma of the host was false may make DMA now.  If it was loaded
 * meanwhile, it has read nothing: until now it ignored doorbells of queues, took no
 * packets and did no work.
 */
void qhca_may_dma(struct qhca_hca *hca, uint64_t now);

/* Declare a function dead with QHCA_FATAL_INJECTED (tests of recovery). */
void qhca_inject_fatal(struct qhca_hca *hca, uint16_t gvmi);

/* ---- wire-fault injector: RDMA frames only, seeded, may change at any time */
enum qhca_inject_kind {
	QHCA_INJECT_DROP, QHCA_INJECT_DUPLICATE, QHCA_INJECT_REORDER,
	QHCA_INJECT_CORRUPT, QHCA_INJECT_DELAY, QHCA_NUM_INJECT_KINDS
};
struct qhca_inject_rule {
	uint32_t ppm;		/* probability, parts in a million */
	uint64_t nth;		/* 0, or: exactly the n-th frame from now */
};
struct qhca_inject_config {
	struct qhca_inject_rule rule[QHCA_NUM_INJECT_KINDS];
	uint64_t delay_ns;	/* for QHCA_INJECT_DELAY */
	bool on_rx, on_tx;
	uint64_t seed;
};
/* false with a sentence in @err when a field is out of range. */
bool qhca_inject_set(struct qhca_hca *hca, const struct qhca_inject_config *cfg,
		     char *err, size_t err_len);
void qhca_inject_get(const struct qhca_hca *hca, struct qhca_inject_config *cfg);

/* ---- cost of misses, a model: off (0) by default, may change at any time */
struct qhca_fetch_cost {	/* ns charged for each read of */
	uint32_t pt_ns;		/* an entry of the protection table */
	uint32_t at_ns;		/* a node of a translation tree */
	uint32_t context_ns;	/* a context of a QP, CQ or SRQ */
};
/* false with a sentence in @err when one is out of range. */
bool qhca_fetch_cost_set(struct qhca_hca *hca,
			 const struct qhca_fetch_cost *fetch, char *err,
			 size_t err_len);
void qhca_fetch_cost_get(const struct qhca_hca *hca,
			 struct qhca_fetch_cost *fetch);

/* ---- observation: for the host's monitor, tests and tools */
uint64_t qhca_counter(const struct qhca_hca *hca, uint16_t gvmi,
		      enum qhca_counter id);
const char *qhca_counter_name(enum qhca_counter id);
/*
 * How many packets that end a message has the function received and owed an acknowledgement for?
 * Only for comparisons: it is not part of the image, and no reset changes it.
 */
uint64_t qhca_answered(const struct qhca_hca *hca, uint16_t gvmi);
void qhca_trace_mask(struct qhca_hca *hca, uint64_t enabled_ids);

struct qhca_port_info {
	bool enabled, fatal, link_up;
	uint32_t fatal_cause;
	uint8_t mac[6];
	uint32_t eth_mtu;
	uint32_t num_gids_valid;
};
void qhca_query_port(const struct qhca_hca *hca, uint16_t gvmi,
		     struct qhca_port_info *info);
/*
 * The addresses that the function sends from: that of its port, and those of its GIDs,
 * with the tags that its frames have then on the wire, or QHCA_GID_NO_VLAN.  Those that the
 * switch does not let out are not among them.  One address may come more than once.
 */
void qhca_for_each_source(const struct qhca_hca *hca, uint16_t gvmi,
			  void (*each)(void *arg, const uint8_t *mac,
				       uint16_t vlan), void *arg);

/* The parts of a QP that have a state of their own. */
enum qhca_qp_part {
	QHCA_PART_REQUESTER, QHCA_PART_RESPONDER,
	QHCA_PART_REQUESTER_FAULT,	/* page fault that the requester waits for */
	QHCA_PART_RESPONDER_FAULT,
	QHCA_NUM_QP_PARTS
};
/* The name of a state of @part, such as "rnr-wait"; NULL: there is none. */
const char *qhca_qp_part_state(enum qhca_qp_part part, unsigned int state);

struct qhca_qp_info {
	uint32_t qpn;
	uint8_t type, state;
	uint32_t dest_qpn, sq_pi, sq_ci, rq_pi, rq_ci;
	uint32_t sq_psn, una_psn, rq_psn;
	uint8_t part[QHCA_NUM_QP_PARTS];	/* states, by enum qhca_qp_part */
	bool cached;
};
/*
 * Calls @fn for each live QP of a function in order of number, without disturbing the
 * caches.
 */
void qhca_for_each_qp(struct qhca_hca *hca, uint16_t gvmi,
		      void (*fn)(void *arg, const struct qhca_qp_info *info),
		      void *arg);

struct qhca_cache_info {
	struct qhca_geometry geometry;
	uint32_t valid;		/* lines in use */
};
void qhca_query_cache(const struct qhca_hca *hca, enum qhca_cache_id id,
		      struct qhca_cache_info *info);
struct qhca_cache_line {
	uint32_t set, block;
	bool dirty;
	uint16_t gvmi;
	uint32_t index;		/* key index or queue number */

	/* translation cache, else 0 */
	uint64_t page;		/* page number */
	uint64_t addr;		/* where it leads */
	bool writable;

	/* protection cache, else 0; as the entry has them */
	uint32_t key;		/* index and octet */
	uint32_t pd, access;
	uint64_t start, length;
	uint8_t type;		/* enum qhca_pte_type */
};
/*
 * Calls @fn for each valid line from @first_set on, by set and block, until it
 * returns false; without disturbing the cache.
 */
void qhca_for_each_cache_line(const struct qhca_hca *hca, enum qhca_cache_id id,
			      uint32_t first_set,
			      bool (*fn)(void *arg, const struct qhca_cache_line *line),
			      void *arg);

#endif /* QHCA_H */
