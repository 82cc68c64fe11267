/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the data test does, and what must come of it.
 *
 * Time is cut into rounds. In a round each side posts a list of operations on
 * each of its QPs ("lanes"). The lists, and all payload, are functions of the
 * seed, so that each side knows what the other does; nothing but the verbs
 * under test carries data. Every registered byte has a second copy, its model,
 * to which the lists are applied in order; at the end of a round memory and
 * model must be equal, those bytes included that nobody was to touch.
 *
 * A window is written and read by one remote QP only, so that the order of its
 * operations decides everything, with one exception: a READ that has to be
 * repeated sees what later operations wrote. An operation that overlaps a READ
 * of the same round is therefore fenced.
 *
 * A round ends when all sends have completed and all messages arrived. UC's sends
 * complete when they are on the wire, so the last of a round is one that arrives.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_LANES 64
#define MAX_PIECES 16
#define ROUND_OPS 32
#define PIECE_GAP 32
#define LAYOUT_SLACK ((MAX_PIECES + 1) * PIECE_GAP)
#define GRH_LEN 40
#define TAG_LEN 16

enum settings_flags {
	USE_EVENTS = 1,		/* sleep in completion channels */
	USE_SRQ = 2,
	LOSSY = 4,		/* UC, UD: messages may be lost, or come twice */
	NO_ATOMICS = 8,
	NO_SPLIT = 16,		/* one SGE a work request */
	USE_PLACE = 32,		/* ATOMIC WRITE and FLUSH too */
	EXTENDED = 64,		/* ibv_wr_*(), ibv_start_poll() */
	FENCE_EMPTY = 128,	/* requests of no bytes wait for READs */
	GO_ON = 256,		/* rounds follow until the client says that they end */
};

/* The client chooses these and sends them to the server. */
struct settings {
	uint64_t seed;
	uint32_t type;		/* enum ibv_qp_type; XRC: IBV_QPT_XRC_SEND */
	uint32_t mtu;		/* bytes */
	uint32_t lanes;
	uint32_t rounds;
	uint32_t max_size;
	uint32_t flags;
	uint32_t seconds;	/* that a round may take */
	uint32_t timeout;	/* of RC's ack timer */
};

enum op_kind {
	OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM, OP_READ, OP_CMP_SWAP, OP_FETCH_ADD,
	OP_ATOMIC_WRITE, OP_FLUSH, OP_KINDS,
};

extern const char *const op_names[OP_KINDS];

struct piece {
	uint32_t at;
	uint32_t len;
};

/* The memory of a work request: pieces of one region. */
struct layout {
	unsigned int n;
	struct piece piece[MAX_PIECES];
};

struct op {
	enum op_kind kind;
	uint32_t size;
	uint32_t remote;	/* offset in the window */
	uint32_t imm;
	bool match;		/* CMP_SWAP: that the comparison is to hold */
	uint64_t operand;	/* swapped in, added, or stored */
	uint64_t compare;

	/* known to the requester only */
	bool fenced;
	bool signalled;
	bool is_inline;
	struct layout local;
};

struct region {
	uint8_t *mem;
	uint8_t *model;
	size_t size;
	void *mr;
};

static inline bool op_gathers(enum op_kind kind)
{
	return kind <= OP_WRITE_IMM;
}

/* Does it work on 8 bytes at a multiple of 8? */
static inline bool op_is_word(enum op_kind kind)
{
	return kind == OP_CMP_SWAP || kind == OP_FETCH_ADD || kind == OP_ATOMIC_WRITE;
}

/* Has it no memory on the requester's side?  Then it is posted by ibv_wr_*(). */
static inline bool op_is_place(enum op_kind kind)
{
	return kind == OP_ATOMIC_WRITE || kind == OP_FLUSH;
}

static inline bool op_takes_receive(enum op_kind kind)
{
	return kind == OP_SEND || kind == OP_SEND_IMM || kind == OP_WRITE_IMM;
}

static inline bool op_carries_imm(enum op_kind kind)
{
	return kind == OP_SEND_IMM || kind == OP_WRITE_IMM;
}

static inline bool op_is_send(enum op_kind kind)
{
	return kind == OP_SEND || kind == OP_SEND_IMM;
}

/* Seeded pseudo-random numbers. */
struct rng {
	uint64_t state;
};

struct rng rng_for(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
uint64_t rng_next(struct rng *rng);
/* 0 to n - 1 */
uint32_t rng_below(struct rng *rng, uint32_t n);

/* Pseudo-random bytes; the same for the same key. */
void fill(uint64_t key, uint8_t *to, size_t len);

/* The key of one operation's payload. */
uint64_t payload_key(const struct settings *s, unsigned int side, unsigned int lane,
		     uint32_t round, uint32_t op);

/*
 * The payload of one message. In LOSSY mode it begins with a tag, by which the
 * receiver finds out what it got; then parse_tag tells whether it is one.
 */
void make_payload(const struct settings *s, unsigned int side, unsigned int lane,
		  uint32_t round, uint32_t op, uint8_t *to, uint32_t len);
bool parse_tag(const uint8_t *from, uint32_t len, uint32_t *round, uint32_t *op);

/* One side's operations on one lane in one round, as both sides know them. */
unsigned int plan_ops(const struct settings *s, unsigned int side, unsigned int lane,
		      uint32_t round, struct op *ops);

/* The most bytes that plan_ops puts into one round of one lane. */
size_t round_bytes(const struct settings *s);
/* The largest SEND it makes. */
uint32_t largest_message(const struct settings *s);

/*
 * Cuts @size bytes at *@at of a region into pieces with gaps between them and
 * moves *@at on, by at most @size + LAYOUT_SLACK.
 */
void lay_out(struct rng *rng, uint32_t size, unsigned int max_pieces, uint32_t *at,
	     struct layout *layout);

void scatter(uint8_t *region, const struct layout *layout, const uint8_t *from, size_t len);
void gather(const uint8_t *region, const struct layout *layout, uint8_t *to, size_t len);

void region_new(struct region *region, size_t size);
/* NULL, or the first place where memory and model differ. */
const uint8_t *region_differs(const struct region *region);
bool layout_differs(const struct region *region, const struct layout *layout);

/*
 * Applies an operation to the model of the window it works on. @data is the
 * payload of a WRITE, and where a READ or an atomic returns what it found.
 */
void apply(uint8_t *window, struct op *op, uint8_t *data);

#endif
