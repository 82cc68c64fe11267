// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each input runs once. One input in eight runs a second time, on a new device, and
 * both runs must have the same digest.
 */
#include "alloc.h"
#include "guard.h"

static uint64_t run(const uint8_t *data, size_t size, struct guard_mode mode)
{
	uint64_t digest;

	guard_mode = mode;
	alloc_stain(mode.stain);
	digest = fuzz_one(data, size);
	guard_check_heap();
	return digest;
}

/* A second run takes as long as the first: choose one input in eight by its bytes. */
static bool deserves_two(const uint8_t *data, size_t size)
{
	uint8_t sum = 0;

	while (size--)
		sum = (uint8_t)(sum * 5 + data[size]);
	return !(sum & 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool two = deserves_two(data, size);
	uint64_t digest;

	digest = run(data, size, (struct guard_mode){ .stain = 0xa5,
						       .compared = two });
	if (two && run(data, size, (struct guard_mode){ .stain = 0x3c,
		       .compared = true, .fresh = true, .thorough = true }) !=
	    digest)
		guard_fail("a new device behaves unlike one that was reset, or memory never written has gone out");
	return 0;
}
