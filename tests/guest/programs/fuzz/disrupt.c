// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What root does to the device meanwhile, one thing at a time, until it works again;
 * and what root reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "parts.h"
#include "lib/peer.h"

/* $pci is the device's address there, and $net its interface's name. */
#define FIND \
	"cd /sys/bus/pci/drivers/qhca; pci=$(ls -d 0* | head -n 1); " \
	"net=$(ls /sys/bus/pci/devices/$pci/net | head -n 1); "

static const struct {
	const char *name, *command;
	bool harmless;		/* RDMA goes on */
} disruptions[] = {
	{ "mtu", FIND "ip link set $net mtu $((RANDOM % 2 ? 1500 : 4200))", true },
	{ "rings", FIND "ethtool -G $net rx $((64 << RANDOM % 4)) tx $((64 << RANDOM % 4))", true },
	{ "link", FIND "ip link set $net down; sleep 0.1; ip link set $net up" },
	{ "reload", FIND "devlink dev reload pci/$pci" },
	{ "flr", FIND "echo 1 > /sys/bus/pci/devices/$pci/reset" },
	{ "unbind", FIND "echo $pci > unbind; echo $pci > bind" },
	{ "unload", "rmmod qhca_ib && insmod /run/qhca/modules/qhca_ib.ko" },
	/* The host does this when it finds the file, and then removes it. */
	{ "fatal", "touch inject; until [ ! -e inject ]; do sleep 0.02; done" },
};

#define DISRUPTIONS	(sizeof(disruptions) / sizeof(disruptions[0]))

/* The interface is new after some of them, and down. */
#define SET_UP FIND "[ -n \"$net\" ] && ip link set $net up"

static bool comes_back(const char *name)
{
	uint64_t give_up = now_ns() + opt.patience * 1000000000ull;
	union ibv_gid gid;

	/* Dead devices are ready until their recovery begins. */
	if (!strcmp(name, "fatal"))
		while (ready_gid(&gid) >= 0 && now_ns() < give_up)
			usleep(5000);
	while (shell(SET_UP) || ready_gid(&gid) < 0) {
		if (now_ns() > give_up)
			return false;
		usleep(20000);
	}
	return true;
}

static void disrupt(unsigned int which)
{
	const char *name = disruptions[which].name;
	bool counts = !disruptions[which].harmless;
	int rc;

	say("disruption: %s", name);
	shared->begun += counts;
	rc = shell("cd %s; %s", opt.dir, disruptions[which].command);
	if (!comes_back(name))
		fail("the device does not come back after: %s (%d)", name, rc);
	else if (rc && strcmp(name, "unload"))
		fail("%s ended with %d", name, rc);
	if (counts) {
		shared->end_ns = now_ns();
		shared->ended++;
	}
}

void disrupt_run(void)
{
	struct rng rng = rng_of(opt.seed, opt.first_round, 1000);

	while (!shared->stop && !shared->failed) {
		uint64_t next = now_ns() + (1000 + below(&rng, 3000)) * 1000000ull;
		unsigned int which = below(&rng, opt.fatal ? DISRUPTIONS : DISRUPTIONS - 1);

		while (now_ns() < next && !shared->stop)
			usleep(10000);
		if (!shared->stop)
			disrupt(which);
	}
	exit(0);
}

void watch_run(void)
{
	static const char *const types[] = { "qp", "cq", "mr", "pd", "srq", "ctx", "cm_id" };

	for (unsigned int i = 0; !shared->stop; i++) {
		shell("rdma -dd resource show %s > /dev/null 2>&1", types[i % 7]);
		if (i % 7 < 3)
			shell("rdma resource show %s -r > /dev/null 2>&1", types[i % 7]);
		if (i % 7 == 0)
			shell("rdma -dd statistic show > /dev/null 2>&1; rdma statistic show mr > /dev/null 2>&1");
		usleep(400000);
	}
	exit(0);
}
