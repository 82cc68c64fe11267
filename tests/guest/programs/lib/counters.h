/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The counters of a qhca device as they are now: those of its netdev, which asks
 * the device each time, where hw_counters may answer from memory.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct counters {
	int sock;
	char netdev[16];
	unsigned int n;			/* statistics that the netdev has */
	const char *const *name;	/* those wanted, up to NULL */
	unsigned int *at;		/* where they are among the n */
	struct ethtool_stats *stats;
};

/*
 * Counters of these names (an array that ends in NULL and stays), of the netdev
 * of the GID with that index. Failures end the program.
 */
void counters_open(struct counters *c, struct ibv_context *ctx, int gid_index,
		   const char *const *name);
void counters_close(struct counters *c);
/* Reads all at one time: value[i] is that of name[i]. */
void counters_read(struct counters *c, uint64_t *value);

#endif
