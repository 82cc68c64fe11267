/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What scenarios of bundles share: what goes over the wire, counted and kept, and transfers
 * whose data are compared.
 */
#ifndef QHCA_BUNDLES_H
#define QHCA_BUNDLES_H

#include "pair.h"
#include "wire/bundle.h"
#include "wire/pkt.h"

#define MTU		1024u
#define MESSAGE		(8 * MTU)
#define BUNDLES		.max_bundle = 16384
#define MAX_KEPT	64
#define PEER_TYPE	0x88b5
#define PEER_OVERHEAD	118u		/* of a PROBE, beside its payload */
#define SECOND		1000000000ull
#define MS		1000000ull
#define PAUSE		1000000ull	/* after the first packets that were lost */
#define TOO_SHORT	1200u		/* a path that passes packets and no bundles */

enum peer_kind { PEER_ASK = 1, PEER_OFFER, PEER_PROBE, PEER_HEARD, PEER_KINDS };

/* Offsets in a message of the peers, which is behind the EtherType. */
#define PEER_KIND	5
#define PEER_SIZE	8
#define PEER_TOKEN	12
#define PEER_GID	16

struct kept {
	size_t len;
	uint8_t data[QHCA_MAX_BUNDLE_FRAME];
};

/* What the hosts have sent; the wire drops what is longer than @limit. */
struct seen {
	unsigned int kind[PEER_KINDS];
	unsigned int bundles, single;	/* frames of RoCE with a payload */
	unsigned int asks_of[2];
	/* The same by the last octet of the sender's address: of each function. */
	struct {
		unsigned int asks, bundles, single;
	} of[256];
	size_t longest;			/* frame of any kind */
	uint64_t roce_bytes[2];		/* of all frames of RoCE, by host */
	enum peer_kind drop;		/* 0: none */
	size_t limit;
	bool keep;			/* frames of host 0 with a payload */
	unsigned int num_kept;
	struct kept *kept;
	struct kept last[PEER_KINDS];	/* the last message of the peers of each kind */
};

/* Sets world.filter: from now on @s counts, until unwatch(). */
void watch(struct pair *p, struct seen *s);
void unwatch(struct pair *p, struct seen *s);
/* What watch() sets, for filters that do more. */
bool see_frame(struct world *w, unsigned int from, uint8_t *frame, size_t len);

/* Time passes, whether or not anybody works. */
void sleep_for(struct pair *p, uint64_t ns);
/* New bytes in the region of @e, and are they there? */
void fill_at(struct end *e, uint32_t off, uint8_t mark, uint32_t len);
bool holds(struct end *e, uint32_t off, uint8_t mark, uint32_t len);
/* One request of a; its data have arrived when this returns. */
void transfer(struct pair *p, uint8_t opcode, uint32_t len, uint8_t mark);
/* The same WRITE without waiting, and whether its data arrived. */
void begin_write(struct pair *p, uint32_t len, uint8_t mark);
bool has_arrived(struct pair *p, uint32_t len, uint8_t mark);
/* Takes all completions, whatever they are. */
void discard_completions(struct md_cq *cq);
/* A message that goes as one bundle (or as eight packets), and nothing but that. */
#define EXPECT_A_BUNDLE(p, s, mark) expect_message(__LINE__, p, s, mark, true)
#define EXPECT_EIGHT(p, s, mark) expect_message(__LINE__, p, s, mark, false)
void expect_message(int line, struct pair *p, struct seen *s, uint8_t mark, bool bundle);
/* One message within 200 us; has it gone as a bundle? */
bool goes_as_bundle(struct pair *p, struct seen *s, uint8_t mark);
/* The wire loses a bundle, whose packets come again after the timer has fired. */
void lose_a_bundle(struct pair *p, struct seen *s);
/* Steps until the hosts have sent @num bundles in all. */
void until_bundles(struct pair *p, struct seen *s, unsigned int num);

#endif /* QHCA_BUNDLES_H */
