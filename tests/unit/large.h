/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Several segments of TCP in one frame, as the model of tcp.h has them.
 */
#ifndef QHCA_TEST_LARGE_H
#define QHCA_TEST_LARGE_H

#include "nic_tcp.h"
#include "wire/trailer.h"

#define MAX_LEN		(65535u + 18)

static uint8_t large[MAX_LEN + TCP_MAX_HDR], want[MAX_LEN + TCP_MAX_HDR];

static inline uint32_t part_of(const struct tcp_spec *s, uint32_t off, uint32_t most)
{
	return s->payload - off < most ? s->payload - off : most;
}

static inline void put_trailer(uint8_t *p, uint16_t mss)
{
	memcpy(p, "qhca\1", 6);
	put_be16(p + 6, mss);
}

/* The model's large segment with @num segments from byte @off on.  Returns its length. */
static inline uint32_t make_large(const struct tcp_spec *s, uint32_t off, unsigned int num)
{
	uint32_t len = tcp_segment(s, large, off, part_of(s, off, num * s->mss));

	put_trailer(large + len, s->mss);
	return len + HCA_TRAILER;
}

#endif /* QHCA_TEST_LARGE_H */
