// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/peer.h"
#include "plan.h"

const char *const op_names[OP_KINDS] = {
	"SEND", "SEND_IMM", "WRITE", "WRITE_IMM", "READ", "CMP_SWAP", "FETCH_ADD",
	"ATOMIC_WRITE", "FLUSH",
};

#define TAG_MAGIC 0x71686361u

struct rng rng_for(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	struct rng rng = { seed };

	rng.state = rng_next(&rng) ^ a;
	rng.state = rng_next(&rng) ^ b;
	rng.state = rng_next(&rng) ^ c;
	return rng;
}

/* splitmix64 */
uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint32_t rng_below(struct rng *rng, uint32_t n)
{
	return n ? (rng_next(rng) >> 32) * n >> 32 : 0;
}

void fill(uint64_t key, uint8_t *to, size_t len)
{
	uint64_t x = key | 1;

	for (; len; len -= len < 8 ? len : 8, to += 8) {
		uint64_t word;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		word = x * 0x2545f4914f6cdd1dull;
		memcpy(to, &word, len < 8 ? len : 8);
	}
}

uint64_t payload_key(const struct settings *s, unsigned int side, unsigned int lane,
		     uint32_t round, uint32_t op)
{
	struct rng rng = rng_for(s->seed, 1, (uint64_t)side << 32 | lane, (uint64_t)round << 32 | op);

	return rng_next(&rng);
}

void make_payload(const struct settings *s, unsigned int side, unsigned int lane,
		  uint32_t round, uint32_t op, uint8_t *to, uint32_t len)
{
	fill(payload_key(s, side, lane, round, op), to, len);
	if (s->flags & LOSSY) {
		uint32_t tag[4] = { TAG_MAGIC, round, op, len };

		memcpy(to, tag, sizeof(tag));
	}
}

bool parse_tag(const uint8_t *from, uint32_t len, uint32_t *round, uint32_t *op)
{
	uint32_t tag[4];

	if (len < sizeof(tag))
		return false;
	memcpy(tag, from, sizeof(tag));
	*round = tag[1];
	*op = tag[2];
	return tag[0] == TAG_MAGIC && tag[3] == len;
}

uint32_t largest_message(const struct settings *s)
{
	return s->type == IBV_QPT_UD && s->max_size > s->mtu ? s->mtu : s->max_size;
}

size_t round_bytes(const struct settings *s)
{
	return 2 * (size_t)s->max_size;
}

static uint32_t pick_size(struct rng *rng, const struct settings *s)
{
	uint32_t most = largest_message(s), size;

	switch (rng_below(rng, 10)) {
	case 0:
		size = rng_below(rng, 9);
		break;
	case 1:
	case 2:
	case 3:
		size = rng_below(rng, 257);
		break;
	case 4:
	case 5:		/* around whole numbers of packets */
		size = s->mtu * (1 + rng_below(rng, 4)) - 1 + rng_below(rng, 3);
		break;
	case 6:
	case 7:
		size = rng_below(rng, 4 * s->mtu);
		break;
	case 8:
		size = rng_below(rng, 32768);
		break;
	default:
		size = rng_below(rng, most + 1);
	}
	if (size > most)
		size = most - rng_below(rng, 3);
	if (s->flags & LOSSY && size < TAG_LEN)
		size = TAG_LEN;
	return size;
}

static enum op_kind pick_kind(struct rng *rng, const struct settings *s)
{
	static const uint8_t weights[OP_KINDS] = { 4, 3, 6, 3, 6, 2, 2, 3, 3 };
	int kinds = s->flags & USE_PLACE ? OP_KINDS : OP_ATOMIC_WRITE, sum = 0, at, k;

	if (s->type == IBV_QPT_UD || s->flags & LOSSY)
		kinds = OP_WRITE;
	else if (s->type == IBV_QPT_UC)
		kinds = OP_READ;
	else if (s->flags & NO_ATOMICS)
		kinds = OP_CMP_SWAP;
	for (k = 0; k < kinds; k++)
		sum += weights[k];
	at = rng_below(rng, sum);
	for (k = 0; at >= weights[k]; k++)
		at -= weights[k];
	return k;
}

unsigned int plan_ops(const struct settings *s, unsigned int side, unsigned int lane,
		      uint32_t round, struct op *ops)
{
	struct rng rng = rng_for(s->seed, 2, (uint64_t)side << 32 | lane, round);
	uint32_t window = round_bytes(s), left = window;
	unsigned int n = 1 + rng_below(&rng, ROUND_OPS);

	for (unsigned int i = 0; i < n; i++) {
		struct op *op = &ops[i];

		memset(op, 0, sizeof(*op));
		op->kind = pick_kind(&rng, s);
		/* UC completes what is sent: the last one must tell that it arrived. */
		if (s->type == IBV_QPT_UC && i == n - 1 && op->kind == OP_WRITE)
			op->kind = OP_WRITE_IMM;
		op->size = pick_size(&rng, s);
		if (op->size > left)
			op->size = s->flags & LOSSY ? TAG_LEN : left;
		op->imm = rng_next(&rng);
		op->operand = rng_next(&rng);
		op->compare = rng_next(&rng);
		op->match = rng_below(&rng, 2);
		if (op_is_word(op->kind))
			op->size = 8;
		left -= op->size < left ? op->size : left;
		/* Now and then where the one before was. */
		op->remote = i && !rng_below(&rng, 3) ? ops[i - 1].remote :
							 rng_below(&rng, window + 1);
		if (op->remote > window - op->size)
			op->remote = window - op->size;
		if (op_is_word(op->kind))
			op->remote &= ~7u;
	}
	return n;
}

void lay_out(struct rng *rng, uint32_t size, unsigned int max_pieces, uint32_t *at,
	     struct layout *layout)
{
	unsigned int n = size ? 1 : rng_below(rng, 2);
	bool backwards = rng_below(rng, 2);
	uint32_t left = size;

	if (n && rng_below(rng, 2))
		n += rng_below(rng, max_pieces);
	layout->n = n;
	for (unsigned int i = 0; i < n; i++) {
		uint32_t len = i == n - 1 ? left : rng_below(rng, 2 * left / (n - i) + 1);

		layout->piece[backwards ? n - 1 - i : i] = (struct piece) { *at, len };
		*at += len + rng_below(rng, PIECE_GAP);
		left -= len;
	}
	*at += rng_below(rng, PIECE_GAP);
}

void scatter(uint8_t *region, const struct layout *layout, const uint8_t *from, size_t len)
{
	for (unsigned int i = 0; i < layout->n && len; i++) {
		const struct piece *p = &layout->piece[i];
		size_t part = p->len < len ? p->len : len;

		memcpy(region + p->at, from, part);
		from += part;
		len -= part;
	}
}

void gather(const uint8_t *region, const struct layout *layout, uint8_t *to, size_t len)
{
	for (unsigned int i = 0; i < layout->n && len; i++) {
		const struct piece *p = &layout->piece[i];
		size_t part = p->len < len ? p->len : len;

		memcpy(to, region + p->at, part);
		to += part;
		len -= part;
	}
}

void region_new(struct region *region, size_t size)
{
	region->size = size;
	region->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	region->model = malloc(size);
	if (region->mem == MAP_FAILED || !region->model)
		die("no memory for a region of %zu bytes", size);
}

const uint8_t *region_differs(const struct region *region)
{
	size_t at = 0;

	if (!memcmp(region->mem, region->model, region->size))
		return NULL;
	while (region->mem[at] == region->model[at])
		at++;
	return region->mem + at;
}

bool layout_differs(const struct region *region, const struct layout *layout)
{
	for (unsigned int i = 0; i < layout->n; i++) {
		const struct piece *p = &layout->piece[i];

		if (memcmp(region->mem + p->at, region->model + p->at, p->len))
			return true;
	}
	return false;
}

void apply(uint8_t *window, struct op *op, uint8_t *data)
{
	uint8_t *at = window + op->remote;
	uint64_t old, new;

	switch (op->kind) {
	case OP_WRITE:
	case OP_WRITE_IMM:
		memcpy(at, data, op->size);
		break;
	case OP_ATOMIC_WRITE:
		memcpy(at, &op->operand, 8);
		break;
	case OP_READ:
		memcpy(data, at, op->size);
		break;
	case OP_CMP_SWAP:
	case OP_FETCH_ADD:
		memcpy(&old, at, 8);
		if (op->kind == OP_FETCH_ADD) {
			new = old + op->operand;
		} else {
			if (op->match)
				op->compare = old;
			new = old == op->compare ? op->operand : old;
		}
		memcpy(at, &new, 8);
		memcpy(data, &old, 8);
		break;
	default:
		break;
	}
}
