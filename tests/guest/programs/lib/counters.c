// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "counters.h"
#include "peer.h"

static void ask(struct counters *c, void *data)
{
	struct ifreq request = { .ifr_data = data };

	strcpy(request.ifr_name, c->netdev);
	if (ioctl(c->sock, SIOCETHTOOL, &request))
		die("statistics of %s: %s", c->netdev, strerror(errno));
}

static void find_netdev(struct counters *c, struct ibv_context *ctx, int gid_index)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/%d",
		 ibv_get_device_name(ctx->device), gid_index);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%15s", c->netdev) != 1)
		die("%s: %s", path, strerror(errno));
	fclose(file);
}

static unsigned int count_strings(struct counters *c)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t n;
	} set = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_STATS } };

	ask(c, &set);
	if (!set.info.sset_mask)
		die("%s has no statistics", c->netdev);
	return set.n;
}

static void find_names(struct counters *c, const struct ethtool_gstrings *strings)
{
	unsigned int wanted = 0;

	while (c->name[wanted])
		wanted++;
	c->at = calloc(wanted, sizeof(*c->at));
	if (!c->at)
		die("no memory");
	for (unsigned int i = 0; i < wanted; i++) {
		unsigned int k = 0;

		while (k < c->n && strncmp((const char *)strings->data + k * ETH_GSTRING_LEN,
					   c->name[i], ETH_GSTRING_LEN))
			k++;
		if (k == c->n)
			die("%s has no counter %s", c->netdev, c->name[i]);
		c->at[i] = k;
	}
}

void counters_open(struct counters *c, struct ibv_context *ctx, int gid_index,
		   const char *const *name)
{
	struct ethtool_gstrings *strings;

	c->name = name;
	find_netdev(c, ctx, gid_index);
	c->sock = socket(AF_INET, SOCK_DGRAM, 0);
	if (c->sock < 0)
		die("socket: %s", strerror(errno));
	c->n = count_strings(c);
	strings = calloc(1, sizeof(*strings) + c->n * ETH_GSTRING_LEN);
	c->stats = calloc(1, sizeof(*c->stats) + c->n * sizeof(c->stats->data[0]));
	if (!strings || !c->stats)
		die("no memory");
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_STATS;
	strings->len = c->n;
	ask(c, strings);
	find_names(c, strings);
	free(strings);
}

void counters_close(struct counters *c)
{
	close(c->sock);
	free(c->at);
	free(c->stats);
}

void counters_read(struct counters *c, uint64_t *value)
{
	c->stats->cmd = ETHTOOL_GSTATS;
	c->stats->n_stats = c->n;
	ask(c, c->stats);
	for (unsigned int i = 0; c->name[i]; i++)
		value[i] = c->stats->data[c->at[i]];
}
