// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-touch: accesses by key and page, in an order given, and what the
 * device counted meanwhile.
 *
 * An access is an RDMA WRITE of 8 bytes, inline, over a pair of RC QPs that are
 * connected to each other through the device's loopback: the one look-up by key
 * that the device makes for it is that of the R_Key, so that the counters are
 * those of the accesses asked for and nothing else.
 *
 *   qhca-touch -d DEVICE -g GID_INDEX COMMAND...
 *
 *   regions N PAGES KIND        register N regions (after letting go of those
 *                               before) of PAGES pages each; KIND: small (4
 *                               KiB pages), huge (2 MiB pages), malloc (4 KiB
 *                               pages as malloc() has them), pool (4 KiB, from
 *                               the memory pool)
 *   write KEY PAGE              one access: region and page, from 0
 *   repeat TIMES KEY,KEY,...    these keys' first pages, so many times
 *   pattern KIND KEYS PAGES     everything once; then, counted, the accesses
 *                               of pattern.h
 *   churn N                     register N regions and let go of them
 *   queues N                    make N more pairs of RC QPs, connected likewise
 *   queue-pattern KIND N        READs of 8 bytes, one at a time, over the first
 *                               N pairs, in the order of pattern.h; each once
 *                               that is not counted, then those that are
 *   timing                      print times with what `show` prints
 *   mark                        counts from here
 *   show LABEL                  prints the counts since, as a line of JSON
 *   hold                        sleeps until it is killed
 *
 * What was written is checked at the end: an access that went astray is an
 * error.
 *
 * Pages must be pages to the device, too, which may take neighbours in physical
 * memory for a larger one.  So each region has one page of memory, mapped PAGES
 * times; page P is written at the P-th of the 512 words of it.  (Memory of the
 * pool has no pages to the device, and memory of malloc() is registered as it is.)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/memfd.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/counters.h"
#include "pattern.h"
#include "lib/peer.h"
#include "touch_pool.h"

#define SMALL_PAGE	4096ul
#define HUGE_PAGE	(2ul << 20)
#define BATCH		64
#define WORDS		512		/* of a page that are written */
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* What is shown. */
static const char *const counter_names[] = {
	"pt_hits", "pt_misses", "pt_evictions", "pt_conflicts",
	"pt_invalidations", "pt_stale_fills",
	"at_hits", "at_misses", "at_evictions", "at_conflicts",
	"at_invalidations", "at_stale_fills", "at_node_reads",
	"qpc_misses", "cqc_misses", "pool_direct_uses", "pool_bank_hits",
	"protection_errors", "duplicate_requests", "fetch_stall_ns", NULL
};
#define NUM_COUNTERS (sizeof(counter_names) / sizeof(counter_names[0]) - 1)

struct region {
	struct ibv_mr *mr;
	uint8_t *base;
	uint64_t written[WORDS];	/* number of the last access, by word */
};

enum memory { MEMORY_SMALL, MEMORY_HUGE, MEMORY_MALLOC, MEMORY_POOL };

struct touch {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	int gid_index;

	struct region *region;
	unsigned int num_regions, pages;
	enum memory memory;
	size_t page_size;
	uint8_t *memory_base, *mapped;
	struct qhcadv_pool_mem *pool;
	size_t memory_size, mapped_size;

	uint64_t value[BATCH];		/* what the batch writes */
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH];
	unsigned int batched;
	uint64_t num_accesses;

	struct ibv_qp *(*queue)[2];
	unsigned int num_queues;
	uint64_t *words;		/* one for each queue; then one read */
	struct ibv_mr *words_mr;

	struct counters counters;
	uint64_t mark[NUM_COUNTERS];
	uint64_t mark_time, mark_accesses;
	bool timing;
};

/* ---- counters */

static void do_mark(struct touch *t)
{
	counters_read(&t->counters, t->mark);
	t->mark_accesses = t->num_accesses;
	t->mark_time = now_ns();
}

static void do_show(struct touch *t, const char *label)
{
	uint64_t time = now_ns() - t->mark_time, value[NUM_COUNTERS];

	counters_read(&t->counters, value);
	printf("{\"label\": \"%s\", \"accesses\": %" PRIu64, label,
	       t->num_accesses - t->mark_accesses);
	for (unsigned int i = 0; i < NUM_COUNTERS; i++)
		printf(", \"%s\": %" PRIu64, counter_names[i], value[i] - t->mark[i]);
	if (t->timing)
		printf(", \"ns\": %" PRIu64, time);
	printf("}\n");
}

/* ---- accesses */

static void flush(struct touch *t)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n, err;

	if (!t->batched)
		return;
	for (unsigned int i = 0; i < t->batched; i++)
		t->wr[i].next = i + 1 < t->batched ? &t->wr[i + 1] : NULL;
	t->wr[t->batched - 1].send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(t->qp[0], t->wr, &bad);
	if (err)
		die("ibv_post_send: %s", strerror(err));
	do
		n = ibv_poll_cq(t->cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("access %" PRIu64 " failed: %s", t->num_accesses,
		    n < 0 ? "no completion" : ibv_wc_status_str(wc.status));
	t->batched = 0;
}

/* Where page @page of @r is written. */
static uint64_t *word_of(const struct touch *t, const struct region *r, unsigned int page)
{
	return (uint64_t *)(r->base + page * t->page_size) + page % WORDS;
}

static void do_write(struct touch *t, unsigned int key, unsigned int page)
{
	unsigned int i = t->batched++;
	struct region *r;

	if (key >= t->num_regions || page >= t->pages)
		die("there is no page %u of key %u", page, key);
	r = &t->region[key];
	t->value[i] = r->written[page % WORDS] = ++t->num_accesses;
	t->sge[i] = (struct ibv_sge){ .addr = (uintptr_t)&t->value[i], .length = 8 };
	t->wr[i] = (struct ibv_send_wr){
		.sg_list = &t->sge[i],
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
		.wr.rdma = {
			.remote_addr = (uintptr_t)word_of(t, r, page),
			.rkey = r->mr->rkey,
		},
	};
	if (t->batched == BATCH)
		flush(t);
}

static void do_repeat(struct touch *t, unsigned int times, const char *keys)
{
	while (times--) {
		const char *next = keys;
		char *end;

		while (*next) {
			do_write(t, strtoul(next, &end, 10), 0);
			if (end == next)
				die("%s is no list of keys", keys);
			next = *end == ',' ? end + 1 : end;
		}
	}
}

static void do_pattern(struct touch *t, const char *name, unsigned int keys,
		       unsigned int pages)
{
	struct pattern_access a;
	enum pattern_kind kind;
	struct pattern p;
	uint64_t n;

	if (!pattern_kind_of(name, &kind) || !keys || !pages)
		die("there is no pattern %s of %u keys and %u pages", name, keys, pages);
	p = pattern_begin(kind, keys, pages);
	for (n = pattern_items(&p); n; n--) {
		a = pattern_next(&p);
		do_write(t, a.key, a.page);
	}
	flush(t);
	do_mark(t);
	for (n = pattern_counted(&p); n; n--) {
		a = pattern_next(&p);
		do_write(t, a.key, a.page);
	}
}

/* ---- regions */

static void check_regions(const struct touch *t)
{
	for (unsigned int k = 0; k < t->num_regions; k++)
		for (unsigned int p = 0; p < t->pages; p++) {
			uint64_t is = *word_of(t, &t->region[k], p);
			uint64_t should = t->region[k].written[p % WORDS];

			if (is != should)
				die("page %u of key %u holds %" PRIu64 ", not %" PRIu64, p, k,
				    is, should);
		}
}

/* One page for each region, mapped as often as it is to have pages. */
static void map_pages(struct touch *t)
{
	unsigned int huge = t->memory == MEMORY_HUGE ? MFD_HUGETLB | MFD_HUGE_2MB : 0;
	int fd = memfd_create("qhca-touch", huge);
	uint8_t *room;

	if (fd < 0 || ftruncate(fd, t->num_regions * t->page_size))
		die("no file in memory: %s", strerror(errno));
	/* with room to begin at a multiple of the page size */
	t->mapped_size = t->memory_size + t->page_size;
	room = mmap(NULL, t->mapped_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		die("no room for %zu bytes: %s", t->mapped_size, strerror(errno));
	t->mapped = room;
	t->memory_base = room + -(uintptr_t)room % t->page_size;
	for (unsigned int k = 0; k < t->num_regions; k++)
		for (unsigned int p = 0; p < t->pages; p++)
			if (mmap(t->memory_base + (k * t->pages + p) * t->page_size,
				 t->page_size, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
				 k * t->page_size) == MAP_FAILED)
				die("page %u of region %u: %s", p, k, strerror(errno));
	close(fd);
}

static void map_memory(struct touch *t)
{
	t->memory_size = t->page_size * t->pages * t->num_regions;
	if (t->memory == MEMORY_SMALL || t->memory == MEMORY_HUGE) {
		map_pages(t);
		return;
	}
	/* the pages are not one and the same, so each needs a word of its own */
	if (t->pages > WORDS)
		die("%u pages are more than %d", t->pages, WORDS);
	if (t->memory == MEMORY_MALLOC) {
		t->memory_base = aligned_alloc(t->page_size, t->memory_size);
		if (!t->memory_base)
			die("out of memory");
		memset(t->memory_base, 0, t->memory_size);
		return;
	}
	t->pool = touch_pool_alloc(t->ctx, t->memory_size);
	t->memory_base = t->pool->addr;
}

static void unmap_memory(struct touch *t)
{
	if (t->memory == MEMORY_POOL)
		touch_pool_free(t->ctx, t->pool);
	else if (t->memory == MEMORY_MALLOC)
		free(t->memory_base);
	else
		munmap(t->mapped, t->mapped_size);
}

static void drop_regions(struct touch *t)
{
	check_regions(t);
	for (unsigned int k = 0; k < t->num_regions; k++) {
		int err = ibv_dereg_mr(t->region[k].mr);

		if (err)
			die("ibv_dereg_mr: %s", strerror(err));
	}
	if (t->num_regions)
		unmap_memory(t);
	free(t->region);
	t->region = NULL;
	t->num_regions = 0;
}

static enum memory memory_of(const char *kind)
{
	if (!strcmp(kind, "small"))
		return MEMORY_SMALL;
	if (!strcmp(kind, "huge"))
		return MEMORY_HUGE;
	if (!strcmp(kind, "malloc"))
		return MEMORY_MALLOC;
	if (!strcmp(kind, "pool"))
		return MEMORY_POOL;
	die("there is no memory of kind %s", kind);
}

/* Keys are numbered one after the other: region K has the index of region 0 + K. */
static void do_regions(struct touch *t, unsigned int num, unsigned int pages,
		       const char *kind)
{
	drop_regions(t);
	if (!num || !pages)
		die("no regions of no pages");
	t->memory = memory_of(kind);
	t->page_size = t->memory == MEMORY_HUGE ? HUGE_PAGE : SMALL_PAGE;
	t->num_regions = num;
	t->pages = pages;
	t->region = calloc(num, sizeof(*t->region));
	if (!t->region)
		die("out of memory");
	map_memory(t);
	for (unsigned int k = 0; k < num; k++) {
		struct region *r = &t->region[k];

		r->base = t->memory_base + k * pages * t->page_size;
		r->mr = ibv_reg_mr(t->pd, r->base, pages * t->page_size, ACCESS);
		if (!r->mr)
			die("ibv_reg_mr: %s", strerror(errno));
		if (r->mr->rkey >> 8 != (t->region[0].mr->rkey >> 8) + k)
			die("key %u has index %u, and key 0 %u", k, r->mr->rkey >> 8,
			    t->region[0].mr->rkey >> 8);
	}
}

static void do_churn(struct touch *t, unsigned int num)
{
	static uint8_t bytes[SMALL_PAGE] __attribute__((aligned(SMALL_PAGE)));

	while (num--) {
		struct ibv_mr *mr = ibv_reg_mr(t->pd, bytes, sizeof(bytes), ACCESS);

		if (!mr || ibv_dereg_mr(mr))
			die("churn: %s", strerror(errno));
	}
}

/* ---- QPs */

static void make_pair(struct touch *t, struct ibv_qp *qp[2], unsigned int depth)
{
	const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024,
		/* no timer: the loopback loses nothing, and a repetition would count */
		.timeout = 0,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
		.rd_atomic = 1, .dest_rd_atomic = 1,
		.access = ACCESS | IBV_ACCESS_REMOTE_READ,
	};

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.send_cq = t->cq,
			.recv_cq = t->cq,
			.cap = { .max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1, .max_inline_data = 8 },
		};

		qp[i] = ibv_create_qp(t->pd, &init);
		if (!qp[i])
			die("ibv_create_qp: %s", strerror(errno));
	}
	errno = qp_connect_pair(qp, &c, t->gid_index);
	if (errno)
		die("the QPs do not connect: %s", strerror(errno));
}

static void end_pair(struct ibv_qp *qp[2])
{
	if (ibv_destroy_qp(qp[0]) || ibv_destroy_qp(qp[1]))
		die("a QP does not go away: %s", strerror(errno));
}

static uint64_t word_value(unsigned int queue)
{
	return (queue + 1) * 0x9e3779b97f4a7c15ull;
}

/* Neighbours in the numbers of QPs, as keys are: the sets are filled evenly. */
static void do_queues(struct touch *t, unsigned int num)
{
	if (t->num_queues || !num)
		die("queues are made once");
	t->queue = calloc(num, sizeof(*t->queue));
	t->words = calloc(num + 1, sizeof(*t->words));
	if (!t->queue || !t->words)
		die("out of memory");
	t->words_mr = ibv_reg_mr(t->pd, t->words, (num + 1) * sizeof(*t->words),
				 ACCESS | IBV_ACCESS_REMOTE_READ);
	if (!t->words_mr)
		die("ibv_reg_mr: %s", strerror(errno));
	for (t->num_queues = 0; t->num_queues < num; t->num_queues++) {
		t->words[t->num_queues] = word_value(t->num_queues);
		make_pair(t, t->queue[t->num_queues], 1);
	}
}

/* Queue @i reads its word into the last one. */
static void do_read(struct touch *t, unsigned int i)
{
	uint64_t *to = &t->words[t->num_queues];
	struct ibv_sge sge = { (uintptr_t)to, sizeof(*to), t->words_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)&t->words[i], t->words_mr->rkey },
	}, *bad;
	struct ibv_wc wc;
	int n, err = ibv_post_send(t->queue[i][0], &wr, &bad);

	if (err)
		die("ibv_post_send: %s", strerror(err));
	do
		n = ibv_poll_cq(t->cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS || wc.wr_id != i || *to != word_value(i))
		die("queue %u did not read its word: %s", i,
		    n < 0 ? "no completion" : ibv_wc_status_str(wc.status));
	t->num_accesses++;
}

static void do_queue_pattern(struct touch *t, const char *name, unsigned int queues)
{
	enum pattern_kind kind;
	struct pattern p;
	uint64_t n;

	if (!pattern_kind_of(name, &kind) || !queues || queues > t->num_queues)
		die("there is no pattern %s of %u queues", name, queues);
	p = pattern_begin(kind, queues, 1);
	for (n = pattern_items(&p); n; n--)
		do_read(t, pattern_next(&p).key);
	do_mark(t);
	for (n = pattern_counted(&p); n; n--)
		do_read(t, pattern_next(&p).key);
}

static void drop_queues(struct touch *t)
{
	for (unsigned int i = 0; i < t->num_queues; i++)
		end_pair(t->queue[i]);
	if (t->words_mr && ibv_dereg_mr(t->words_mr))
		die("ibv_dereg_mr: %s", strerror(errno));
	free(t->words);
	free(t->queue);
}

/* ---- set-up */

static void set_up(struct touch *t, const char *device)
{
	t->ctx = device_open(device);
	t->pd = ibv_alloc_pd(t->ctx);
	t->cq = ibv_create_cq(t->ctx, BATCH, NULL, NULL, 0);
	if (!t->pd || !t->cq)
		die("no PD or CQ: %s", strerror(errno));
	make_pair(t, t->qp, BATCH);
	counters_open(&t->counters, t->ctx, t->gid_index, counter_names);
}

static void tear_down(struct touch *t)
{
	counters_close(&t->counters);
	drop_regions(t);
	drop_queues(t);
	end_pair(t->qp);
	if (ibv_destroy_cq(t->cq) ||
	    ibv_dealloc_pd(t->pd) || ibv_close_device(t->ctx))
		die("not all goes away: %s", strerror(errno));
}

/* ---- commands */

static unsigned int number(const char *text)
{
	return parse_number(text, 0, 1 << 24);
}

/* Returns how many words the command took. */
static int command(struct touch *t, char **word, int left)
{
	static const struct {
		const char *name;
		int words;
	} known[] = {
		{ "regions", 4 }, { "write", 3 }, { "repeat", 3 }, { "pattern", 4 },
		{ "churn", 2 }, { "timing", 1 }, { "mark", 1 }, { "show", 2 },
		{ "hold", 1 }, { "queues", 2 }, { "queue-pattern", 3 },
	};
	unsigned int i = 0;

	while (strcmp(word[0], known[i].name))
		if (++i == sizeof(known) / sizeof(known[0]))
			die("there is no command %s", word[0]);
	if (known[i].words > left)
		die("%s lacks an argument", word[0]);
	switch (i) {
	case 0:
		do_regions(t, number(word[1]), number(word[2]), word[3]);
		break;
	case 1:
		do_write(t, number(word[1]), number(word[2]));
		break;
	case 2:
		do_repeat(t, number(word[1]), word[2]);
		break;
	case 3:
		do_pattern(t, word[1], number(word[2]), number(word[3]));
		break;
	case 4:
		do_churn(t, number(word[1]));
		break;
	case 5:
		t->timing = true;
		break;
	case 6:
		do_mark(t);
		break;
	case 7:
		do_show(t, word[1]);
		fflush(stdout);
		break;
	case 8:
		pause();
		break;
	case 9:
		do_queues(t, number(word[1]));
		break;
	case 10:
		do_queue_pattern(t, word[1], number(word[2]));
		break;
	}
	return known[i].words;
}

int main(int argc, char **argv)
{
	struct touch t = { 0 };
	const char *device = NULL;
	int option;

	while ((option = getopt(argc, argv, "+d:g:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			t.gid_index = number(optarg);
		else
			die("usage: qhca-touch -d DEVICE -g GID_INDEX COMMAND...");
	}
	set_up(&t, device);
	while (optind < argc) {
		optind += command(&t, argv + optind, argc - optind);
		/* commands that post leave a batch to the next that does not */
		if (optind == argc || (strcmp(argv[optind], "write") && strcmp(argv[optind], "repeat")))
			flush(&t);
	}
	tear_down(&t);
	return 0;
}
