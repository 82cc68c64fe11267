/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A host with GIDs, and frames that it sends.
 */
#ifndef QHCA_TEST_SENDING_H
#define QHCA_TEST_SENDING_H

#include "frames.h"

static inline struct host *with_gids(void)
{
	struct host *h = host_new_ready();

	assert_int_equal(set_gid(h, 2, frame_gid4, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 3, frame_gid6, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 4, frame_gid4, frame_mac, 100),
			 QHCA_CMD_OK);
	return h;
}

static inline bool send_to(struct host *h, const uint8_t *dmac, uint32_t payload,
			   uint8_t mark)
{
	struct frame_spec s = frame_default(false);
	static uint8_t built[QHCA_MAX_FRAME];
	uint8_t *room;
	size_t len;

	s.payload = payload;
	s.dst[15] = 200;
	len = frame_build(built, &s);
	memcpy(built, dmac, 6);
	built[len - 1] = mark;
	room = hca_tx_begin(h->fn, len + 10);	/* less than asked is fine */
	if (!room)
		return false;
	memcpy(room, built, len);
	hca_tx_end(h->fn, len, 14, 20);
	return true;
}

static const uint8_t peer[6] = { 2, 9, 9, 9, 9, 9 };

static inline uint8_t mark_of(struct host *h, unsigned int i)
{
	return h->sent[i].data[h->sent[i].len - 1];
}

#endif /* QHCA_TEST_SENDING_H */
