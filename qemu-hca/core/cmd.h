/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The command queue, and the limits that QUERY_CAPS tells and commands enforce.
 */
#ifndef HCA_CORE_CMD_H
#define HCA_CORE_CMD_H

#include "handler.h"
#include "qhca.h"

struct hca_fn;

/* How far the memory that a command gives the device has been looked at (pin.h). */
struct hca_pin_place {
	uint32_t item;			/* ranges that are pinned */
	uint64_t done;			/* bytes of the next that are */
};

enum hca_cmd_phase {
	HCA_CMD_MAILBOXES,		/* are to be pinned, and the input to be read */
	HCA_CMD_NAMED,			/* what it names is to be pinned */
	HCA_CMD_EXECUTES,
};

struct hca_cmdq {
	uint64_t base;
	uint32_t log_slots;
	uint32_t pending;		/* slots rung and not yet executed */
	uint8_t order[HCA_NUM_CMD_SLOTS]; /* these, oldest first: a ring */
	uint32_t head, count;
	bool slots_pinned;		/* stage 2: since ENABLE */
	bool running;			/* the command below is between two slices */
	uint8_t phase;			/* enum hca_cmd_phase */
	struct hca_pin_place pin;
	uint32_t current;		/* its slot's number */
	struct qhca_cmd_slot slot;
	struct hca_cmd_ctx ctx;
	uint8_t in[QHCA_MAILBOX_SIZE];
	uint8_t out[QHCA_MAILBOX_SIZE];
};

void hca_cmdq_reset(struct hca_fn *fn);
/* Forget what was rung and not executed, and a command between two slices. */
void hca_cmdq_stop(struct hca_fn *fn);
/*
 * Forget what was rung and not executed, and a command that is held for memory to be
 * pinned.  A command between two slices goes on, and then STATUS is no longer ENABLED.
 */
void hca_cmdq_disable(struct hca_fn *fn);
/* A write to QHCA_REG_CMDQ_DOORBELL. */
void hca_cmdq_doorbell(struct hca_fn *fn, uint32_t slots);
bool hca_cmdq_pending(const struct hca_fn *fn);
/* Execute at most @budget commands or slices of one; returns how many. */
unsigned int hca_cmdq_run(struct hca_fn *fn, unsigned int budget);

/* Execute all slices that are left of a command that is between two of them. */
void hca_cmdq_finish(struct hca_fn *fn);

/*
 * Loading: the command in hca_cmdq.slot is held again.  false: no command that would have
 * been held.
 */
bool hca_cmdq_hold(struct hca_fn *fn);
/* Bytes of the input mailbox of the command that is held. */
uint32_t hca_cmdq_in_len(const struct hca_fn *fn);

/* Name of an opcode for humans, or NULL. */
const char *hca_cmd_name(uint16_t opcode);

/* What QUERY_CAPS answers. */
void hca_caps_fill(const struct hca_fn *fn, struct qhca_caps *caps);
/* Features that the engine has. */
#define HCA_ENGINE_FEATURES \
	(QHCA_FEAT_RC | QHCA_FEAT_UC | QHCA_FEAT_UD | QHCA_FEAT_ATOMIC | \
	 QHCA_FEAT_SRQ | QHCA_FEAT_MW1 | QHCA_FEAT_MW2B | QHCA_FEAT_FAST_REG | \
	 QHCA_FEAT_RESERVED_LKEY | QHCA_FEAT_STRICT_LKEY | QHCA_FEAT_POOL | \
	 QHCA_FEAT_DEVMEM | QHCA_FEAT_CQ_MODERATION | QHCA_FEAT_CQ_RESIZE | \
	 QHCA_FEAT_ODP | QHCA_FEAT_ODP_IMPLICIT | QHCA_FEAT_UNSOLICITED_ACK | \
	 QHCA_FEAT_MCAST | QHCA_FEAT_ETH_CSUM | QHCA_FEAT_ETH_TSO | \
	 QHCA_FEAT_XRC | \
	 QHCA_FEAT_SRQ_RESIZE | QHCA_FEAT_ATOMIC_WRITE | QHCA_FEAT_FLUSH | \
	 QHCA_FEAT_RAW_PACKET | QHCA_FEAT_VF | QHCA_FEAT_STAGE2 | \
	 QHCA_FEAT_NULL_LKEY | QHCA_FEAT_QP_COUNTERS | QHCA_FEAT_ETH_RSS | \
	 QHCA_FEAT_POLL_HINT | QHCA_FEAT_STREAM_HINT)

#endif /* HCA_CORE_CMD_H */
