// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-rereg: a region is changed all the time, between memory of the pool and
 * memory of the process, while another thread asks the kernel to describe it, as
 * `rdma resource show mr` does. A description may show either state, but no mixture
 * of the two: a region of the pool has a block and no translation tree, another one
 * has a tree and no block. A block beyond the pool's is what freed memory says.
 * Needs two processors to show anything. Prints TAP.
 *
 *   qhca-rereg [-d DEVICE] [-n CHANGES]
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_netlink.h>
#include <infiniband/qhcadv.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define LENGTH	(4 * 4096ul)
#define NESTED	(NLA_F_NESTED | NLA_F_NET_BYTEORDER)

/* What the driver says of a region. */
struct description {
	bool has_index, has_block;
	uint32_t index, levels, nodes, block;
};

static struct qhcadv_pool_attr pool;
static struct ibv_mr *mr;
static atomic_bool over;
static unsigned int descriptions, of_pool, of_process, torn;

/* ---- netlink */

#define FOR_EACH_ATTR(_a, _from, _len)						\
	for (struct nlattr *(_a) = (void *)(_from),				\
	     *end_ = (void *)((char *)(_from) + (_len));			\
	     (char *)(_a) + NLA_HDRLEN <= (char *)end_ && (_a)->nla_len >= NLA_HDRLEN;	\
	     (_a) = (void *)((char *)(_a) + NLA_ALIGN((_a)->nla_len)))

static void *data_of(struct nlattr *a)
{
	return (char *)a + NLA_HDRLEN;
}

static size_t length_of(const struct nlattr *a)
{
	return a->nla_len - NLA_HDRLEN;
}

static int type_of(const struct nlattr *a)
{
	return a->nla_type & ~NESTED;
}

/* Asks for a dump of what @op lists; for a device if @device is not negative. */
static void ask(int sock, int op, int device)
{
	struct {
		struct nlmsghdr head;
		struct nlattr attr;
		uint32_t device;
	} message = {
		.head = {
			.nlmsg_len = device < 0 ? sizeof(message.head) : sizeof(message),
			.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.attr = {
			.nla_len = NLA_HDRLEN + sizeof(uint32_t),
			.nla_type = RDMA_NLDEV_ATTR_DEV_INDEX,
		},
		.device = device,
	};

	MUST(send(sock, &message, message.head.nlmsg_len, 0) == (ssize_t)message.head.nlmsg_len);
}

/* Calls @fn with the attributes of each message until the end of the dump. */
static void each_message(int sock, void (*fn)(struct nlattr *first, size_t len, void *arg),
			 void *arg)
{
	static _Thread_local char buf[65536];

	for (;;) {
		ssize_t len = recv(sock, buf, sizeof(buf), 0);
		struct nlmsghdr *head = (void *)buf;

		MUST(len > 0);
		for (; NLMSG_OK(head, (size_t)len); head = NLMSG_NEXT(head, len)) {
			if (head->nlmsg_type == NLMSG_DONE)
				return;
			MUST(head->nlmsg_type != NLMSG_ERROR);
			fn(NLMSG_DATA(head), head->nlmsg_len - NLMSG_HDRLEN, arg);
		}
	}
}

struct wanted {
	const char *name;
	int index;
};

static void match_device(struct nlattr *first, size_t len, void *arg)
{
	struct wanted *w = arg;
	const char *name = "";
	int index = -1;

	FOR_EACH_ATTR(a, first, len) {
		if (type_of(a) == RDMA_NLDEV_ATTR_DEV_NAME)
			name = data_of(a);
		else if (type_of(a) == RDMA_NLDEV_ATTR_DEV_INDEX)
			index = *(uint32_t *)data_of(a);
	}
	if (!strcmp(name, w->name))
		w->index = index;
}

/* ---- descriptions */

static struct description describe(struct nlattr *driver)
{
	struct description d = {};
	const char *name = "";

	FOR_EACH_ATTR(a, data_of(driver), length_of(driver)) {
		uint32_t value;

		if (type_of(a) == RDMA_NLDEV_ATTR_DRIVER_STRING)
			name = data_of(a);
		if (type_of(a) != RDMA_NLDEV_ATTR_DRIVER_U32)
			continue;
		value = *(uint32_t *)data_of(a);
		if (!strcmp(name, "index")) {
			d.index = value;
			d.has_index = true;
		} else if (!strcmp(name, "levels")) {
			d.levels = value;
		} else if (!strcmp(name, "nodes")) {
			d.nodes = value;
		} else if (!strcmp(name, "pool_block")) {
			d.block = value;
			d.has_block = true;
		}
	}
	return d;
}

static void judge(const struct description *d)
{
	if (!d->has_index || d->index != mr->lkey >> 8)
		return;
	descriptions++;
	if (d->has_block && !d->levels && !d->nodes && d->block < pool.num_blocks) {
		of_pool++;
	} else if (!d->has_block && d->levels && d->nodes) {
		of_process++;
	} else if (torn++ < 10) {
		printf("# %u levels, %u nodes, ", d->levels, d->nodes);
		if (d->has_block)
			printf("block %u of %u\n", d->block, pool.num_blocks);
		else
			printf("no block\n");
	}
}

static void look_into(struct nlattr *first, size_t len, void *arg)
{
	struct description d;

	(void)arg;
	FOR_EACH_ATTR(a, first, len) {
		if (type_of(a) == RDMA_NLDEV_ATTR_DRIVER) {
			d = describe(a);
			judge(&d);
		} else if (type_of(a) == RDMA_NLDEV_ATTR_RES_MR ||
			   type_of(a) == RDMA_NLDEV_ATTR_RES_MR_ENTRY) {
			look_into(data_of(a), length_of(a), NULL);
		}
	}
}

static void *reader(void *arg)
{
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct wanted w = { .name = arg, .index = -1 };

	MUST(sock >= 0);
	ask(sock, RDMA_NLDEV_CMD_GET, -1);
	each_message(sock, match_device, &w);
	MUST(w.index >= 0);
	while (!atomic_load(&over)) {
		ask(sock, RDMA_NLDEV_CMD_RES_MR_GET, w.index);
		each_message(sock, look_into, NULL);
	}
	close(sock);
	return NULL;
}

static void change(void *addr)
{
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, addr, LENGTH, 0));
}

int main(int argc, char **argv)
{
	unsigned long changes = 4000;
	const char *device = NULL;
	struct qhcadv_pool_mem *mem;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	pthread_t thread;
	void *pages;
	int option;

	while ((option = getopt(argc, argv, "d:n:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'n')
			changes = parse_number(optarg, 2, 1000000);
		else
			return 2;
	}
	ctx = device_open(device);
	MUST(ctx && !qhcadv_query_pool(ctx, &pool, sizeof(pool)));
	pd = ibv_alloc_pd(ctx);
	mem = qhcadv_alloc_pool(ctx, LENGTH);
	pages = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(pd && mem && pages != MAP_FAILED);
	mr = ibv_reg_mr(pd, pages, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);

	MUST(!pthread_create(&thread, NULL, reader, (void *)ibv_get_device_name(ctx->device)));
	for (unsigned long i = 0; i < changes; i++)
		change(i & 1 ? pages : mem->addr);
	atomic_store(&over, true);
	MUST(!pthread_join(thread, NULL));

	printf("# %u descriptions: %u of the pool, %u of the process\n", descriptions, of_pool,
	       of_process);
	tap_point(of_pool && of_process, "both states of the region are described");
	tap_point(!torn, "no description mixes the two");
	MUST(!ibv_dereg_mr(mr) && !qhcadv_free_pool(ctx, mem));
	MUST(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	return tap_end();
}
