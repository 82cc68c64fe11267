// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/trailer.h"

#include <string.h>

#include "bytes.h"

#define VERSION	1

static const uint8_t magic[4] = { 'q', 'h', 'c', 'a' };

struct trailer {
	uint8_t magic[4];
	uint8_t version;
	uint8_t rsvd;
	uint8_t mss[2];			/* big endian */
};
_Static_assert(sizeof(struct trailer) == HCA_TRAILER, "octets on the wire");

void hca_trailer_put(uint8_t *p, uint16_t mss)
{
	struct trailer t = { .version = VERSION };

	memcpy(t.magic, magic, sizeof(magic));
	put_be16(t.mss, mss);
	memcpy(p, &t, sizeof(t));
}

bool hca_trailer_find(const uint8_t *frame, size_t len, uint16_t *mss)
{
	struct trailer t;

	if (len < sizeof(t))
		return false;
	memcpy(&t, frame + len - sizeof(t), sizeof(t));
	*mss = get_be16(t.mss);
	return !memcmp(t.magic, magic, sizeof(magic)) && t.version == VERSION;
}
