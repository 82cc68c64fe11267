// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-vfio ADDRESS [CASE...]: plays the guest of a virtual function that is bound to
 * qhca-vfio. Prints TAP; without names, all cases. BESIDE is the address of another function,
 * for the case of that name; for "broken", somebody has the physical function die and recover.
 */
#include <stdio.h>
#include <string.h>

#include "lib/tap.h"
#include "vfio/cases.h"

static const struct {
	const char *name;
	void (*run)(const char *address);
} cases[] = {
	{ "copy", case_copy },
	{ "interrupt", case_interrupt },
	{ "reset", case_reset },
	{ "read-only", case_read_only },
	{ "bus-addresses", case_bus_addresses },
	{ "large", case_large },
	{ "twice", case_twice },
	{ "beside", case_beside },
	{ "replace", case_replace },
	{ "traffic", case_traffic },
	{ "both", case_both },
	{ "limit", case_limit },
	{ "discard", case_discard },
	{ "swapped", case_swapped },
	{ "flr", case_flr },
	{ "death", case_death },
	{ "broken", case_broken },
	{ "commands", case_commands },
	{ "outside", case_outside },
	{ "promises", case_promises },
	{ "vectors", case_vectors },
	{ "nodes", case_nodes },
	{ "pool", case_pool },
	{ "queues", case_queues },
	{ "changed", case_changed },
	{ "frames", case_frames },
};

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 2;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: qhca-vfio ADDRESS [CASE...]\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (wanted(cases[i].name, argc, argv))
			cases[i].run(argv[1]);
	return tap_end();
}
