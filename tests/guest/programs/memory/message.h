/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of the study, and how often the device looks its caches up for one.
 *
 * The device looks the protection cache up once for each packet whose bytes it
 * reads or writes, and the translation cache once for each page that the bytes of
 * this packet touch (hardware.rst, "Protection check and translation").  A message
 * of 8192 bytes from byte 512 of a page thus makes 8 look-ups of the one and 10 of
 * the other: two of its packets cross the end of a page.
 *
 * The program that drives the device, the unit test that drives the cache alone, and
 * the model that `make study` compares the device with include this.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MESSAGE_MTU	1024u
#define MESSAGE_PAGE	4096u
#define MESSAGE_MAX	65536u

enum message_kind {
	MESSAGE_WRITE, MESSAGE_READ, MESSAGE_FETCH_ADD, MESSAGE_COMPARE_SWAP,
	MESSAGE_NUM_KINDS
};

struct message {
	enum message_kind kind;
	uint32_t offset;		/* from the page of the access, in bytes */
	uint32_t bytes;
};

static inline bool message_is_atomic(const struct message *m)
{
	return m->kind == MESSAGE_FETCH_ADD || m->kind == MESSAGE_COMPARE_SWAP;
}

/* Words of 8 bytes from a word of a page; an atomic operation has one of them. */
static inline bool message_of(const char *name, uint32_t offset, uint32_t bytes,
			      struct message *m)
{
	static const char *const names[MESSAGE_NUM_KINDS] = {
		"write", "read", "fetch-add", "compare-swap",
	};
	unsigned int i = 0;

	while (i < MESSAGE_NUM_KINDS && strcmp(name, names[i]))
		i++;
	*m = (struct message){ (enum message_kind)i, offset, bytes };
	return i < MESSAGE_NUM_KINDS && offset < MESSAGE_PAGE && offset % 8 == 0 &&
	       bytes && bytes % 8 == 0 && bytes <= MESSAGE_MAX &&
	       (!message_is_atomic(m) || bytes == 8);
}

static inline uint32_t message_packets(const struct message *m)
{
	return (m->bytes + MESSAGE_MTU - 1) / MESSAGE_MTU;
}

/* Pages that the message touches, the one of the access included. */
static inline uint32_t message_pages(const struct message *m)
{
	return (m->offset + m->bytes - 1) / MESSAGE_PAGE + 1;
}

struct message_part {			/* pages of a packet, from that of the access */
	uint32_t first, last;
};

static inline struct message_part message_part(const struct message *m, uint32_t packet)
{
	uint32_t done = packet * MESSAGE_MTU, left = m->bytes - done;
	uint32_t from = m->offset + done;
	struct message_part part = {
		.first = from / MESSAGE_PAGE,
		.last = (from + (left < MESSAGE_MTU ? left : MESSAGE_MTU) - 1) / MESSAGE_PAGE,
	};

	return part;
}

#endif /* MESSAGE_H */
