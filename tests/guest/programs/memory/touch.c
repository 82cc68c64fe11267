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
 *   messages OPERATION OFFSET BYTES PATTERN KEYS PAGES
 *                               the same with messages of message.h, one at a time,
 *                               instead of the WRITEs of 8 bytes
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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "touch.h"

/* What is shown. */
static const char *const counter_names[NUM_COUNTERS + 1] = {
	"pt_hits", "pt_misses", "pt_evictions", "pt_conflicts",
	"pt_invalidations", "pt_stale_fills",
	"at_hits", "at_misses", "at_evictions", "at_conflicts",
	"at_invalidations", "at_stale_fills", "at_node_reads",
	"qpc_misses", "cqc_misses", "pool_direct_uses", "pool_bank_hits",
	"protection_errors", "duplicate_requests", "fetch_stall_ns", NULL
};

/* ---- counters */

void do_mark(struct touch *t)
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

uint64_t *word_of(const struct touch *t, const struct region *r, unsigned int page)
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
	drop_room(t);
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
		{ "messages", 7 },
	};
	struct message message;
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
	case 11:
		if (!message_of(word[1], number(word[2]), number(word[3]), &message))
			die("there is no message %s of %s bytes from %s", word[1], word[3],
			    word[2]);
		do_messages(t, &message, word[4], number(word[5]), number(word[6]));
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
		/*
		 * "write" and "repeat" collect a batch, which is posted before any
		 * other command.
		 */
		if (optind == argc || (strcmp(argv[optind], "write") && strcmp(argv[optind], "repeat")))
			flush(&t);
	}
	tear_down(&t);
	return 0;
}
