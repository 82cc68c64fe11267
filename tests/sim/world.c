/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define MILLION		1000000u
#define UNBLOCK_PPM	300000u
#define REORDER_NS	60000u
#define STEP_NS		2000u
#define MAX_LATE	1000u	/* steps */

uint32_t world_rand(struct world *w)
{
	uint64_t z = w->rng += 0x9e3779b97f4a7c15ull;	/* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z >> 32;
}

uint32_t world_pick(struct world *w, uint32_t n)
{
	return (uint64_t)world_rand(w) * n >> 32;
}

bool world_chance(struct world *w, uint32_t ppm)
{
	return ppm && world_pick(w, MILLION) < ppm;
}

/* ---- frames in flight */

static bool before(const struct world_frame *a, const struct world_frame *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void heap_push(struct world *w, struct world_frame f)
{
	uint32_t i;

	if (w->num_flight + 2 > w->cap_flight) {
		w->cap_flight = w->cap_flight ? 2 * w->cap_flight : 256;
		w->flight = realloc(w->flight,
				    w->cap_flight * sizeof(*w->flight));
	}
	for (i = ++w->num_flight; i > 1 && before(&f, &w->flight[i / 2]); i /= 2)
		w->flight[i] = w->flight[i / 2];
	w->flight[i] = f;
}

static struct world_frame heap_pop(struct world *w)
{
	struct world_frame top = w->flight[1];
	struct world_frame f = w->flight[w->num_flight--];
	uint32_t i = 1, child;

	for (; (child = 2 * i) <= w->num_flight; i = child) {
		if (child < w->num_flight &&
		    before(&w->flight[child + 1], &w->flight[child]))
			child++;
		if (!before(&w->flight[child], &f))
			break;
		w->flight[i] = w->flight[child];
	}
	w->flight[i] = f;
	return top;
}

static void launch(struct world *w, unsigned int to, const uint8_t *data,
		   size_t len)
{
	struct world_frame f = {
		.time = w->now + w->link.delay, .order = w->order++,
		.to = to, .len = len, .data = malloc(len),
	};

	if (w->link.jitter)
		f.time += world_pick(w, w->link.jitter);
	if (world_chance(w, w->link.reorder))
		f.time += world_pick(w, REORDER_NS);
	memcpy(f.data, data, len);
	/* The FCS covers the headers of Ethernet, the ICRC does not. */
	if (len > 14 && world_chance(w, w->link.corrupt)) {
		if (w->memory)
			qhca_fill_icrc(w->host[to]->host.hca, f.data, len);
		f.data[14 + world_pick(w, len - 14)] ^= 1 << world_pick(w, 8);
	}
	heap_push(w, f);
}

static void send_to(struct world *w, unsigned int to, const uint8_t *data,
		    size_t len)
{
	if (world_chance(w, w->link.loss)) {
		w->lost++;
		return;
	}
	launch(w, to, data, len);
	if (world_chance(w, w->link.duplicate))
		launch(w, to, data, len);
}

/* Is @mac that of a function of the host?  VFs have the host's number in the low digit. */
static bool reaches(const struct md *md, const uint8_t *mac)
{
	return !memcmp(mac, md->mac, 5) && (mac[5] & 15) == md->mac[5];
}

/* FNV-1a */
static void digest(struct world *w, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		w->digest = (w->digest ^ ((const uint8_t *)data)[i]) *
			    0x100000001b3ull;
}

static void on_tx(void *arg, const uint8_t *frame, size_t len)
{
	struct world_port *port = arg;
	struct world *w = port->w;
	uint8_t copy[QHCA_MAX_BUNDLE_FRAME];

	w->frames++;
	memcpy(copy, frame, len);
	if (w->verbose) {
		digest(w, (uint64_t[]){ w->now, port->host, len }, 24);
		digest(w, frame, len);
	}
	if (w->filter && !w->filter(w, port->host, copy, len))
		return;
	for (unsigned int i = 0; i < w->num_hosts; i++) {
		if (i == port->host)
			continue;
		if (copy[0] & 1 || reaches(w->host[i], copy))
			send_to(w, i, copy, len);
	}
}

static bool on_room(void *arg)
{
	struct world_port *port = arg;
	struct world *w = port->w;

	if (world_chance(w, w->link.block))
		w->blocked[port->host] = true;
	return !w->blocked[port->host];
}

/* ---- time */

static const char *const trace_name[QHCA_NUM_TRACE_IDS] = {
	"reset", "fatal", "cmd", "doorbell", "doorbell-ignored", "event",
	"completion", "qp-state", "tx", "rx", "nak", "rx-nak", "timeout",
	"rx-drop", "protection", "cache-miss", "invalidate", "fault",
	"resume", "qp-part",
};

static void on_trace(struct host *h, enum qhca_trace_id id, uint64_t a,
		     uint64_t b, uint64_t c, uint64_t d)
{
	const struct world_port *port = h->of_fn[0]->tx_arg;
	const struct md *md = md_of(h);

	digest(port->w, (uint64_t[]){ md->host.now, md->mac[5], id, a, b, c, d }, 56);
	if (id == QHCA_TRACE_CACHE_MISS)
		return;		/* too many to print */
	printf("# %10llu host %u %-10s %llx %llx %llx %llx\n",
	       (unsigned long long)md->host.now, md->mac[5], trace_name[id],
	       (unsigned long long)a, (unsigned long long)b,
	       (unsigned long long)c, (unsigned long long)d);
}

void world_init(struct world *w, uint64_t seed, unsigned int hosts,
		uint64_t mem_len, const struct qhca_config *cfg)
{
	bool verbose = w->verbose;

	memset(w, 0, sizeof(*w));
	w->verbose = verbose;
	w->digest = 0xcbf29ce484222325ull;
	w->rng = seed;
	w->now = 1000;
	w->num_hosts = hosts;
	w->link.delay = 1000;
	for (unsigned int i = 0; i < hosts; i++) {
		struct md *md = md_create(i + 1, mem_len, cfg);

		w->host[i] = md;
		w->port[i].w = w;
		w->port[i].host = i;
		md->host.tx = on_tx;
		md->host.tx_room = on_room;
		md->host.tx_arg = &w->port[i];
		md->host.now = w->now;
		md->rng ^= world_rand(w) | 1;
		md->host.trace = on_trace;
		if (w->verbose)
			qhca_trace_mask(md->host.hca, ~0ull);
	}
}

static void print_counters(const struct world *w)
{
	for (unsigned int i = 0; i < w->num_hosts; i++)
		for (uint16_t gvmi = 0; gvmi <= QHCA_MAX_VFS; gvmi++)
			for (int id = 0; id < QHCA_NUM_COUNTERS; id++) {
				uint64_t n = qhca_counter(w->host[i]->host.hca,
							  gvmi, id);

				if (n)
					printf("# counter host %u function %u %s %llu\n",
					       i + 1, gvmi, qhca_counter_name(id),
					       (unsigned long long)n);
			}
	printf("# digest %016llx of trace and frames\n",
	       (unsigned long long)w->digest);
}

void world_fini(struct world *w)
{
	if (w->verbose)
		print_counters(w);
	while (w->num_flight)
		free(heap_pop(w).data);
	free(w->flight);
	for (unsigned int i = 0; i < w->num_hosts; i++)
		md_destroy(w->host[i]);
}

static void set_time(struct world *w, uint64_t now)
{
	w->now = now;
	for (unsigned int i = 0; i < w->num_hosts; i++)
		for (unsigned int gvmi = 0; gvmi <= QHCA_MAX_VFS; gvmi++)
			if (w->host[i]->host.of_fn[gvmi])
				w->host[i]->host.of_fn[gvmi]->now = now;
}

void world_use_memory(struct world *w)
{
	w->memory = true;
	for (unsigned int i = 0; i < w->num_hosts; i++)
		qhca_link_without_icrc(w->host[i]->host.hca, true);
}

/* Addresses, ports, opcode and PSN; what follows may be payload. */
static void destroy_headers(struct host *h, enum host_call call)
{
	struct world_frame *f = h->meanwhile_arg;
	size_t len = f->len > 14 && f->data[14] == 0x45 ? 14 + 20 + 8 + 12 : 14;

	(void)call;
	memset(f->data, 0xee, len < f->len ? len : f->len);
}

static void deliver_shared(struct host *h, struct world_frame *f)
{
	if (!h->meanwhile) {
		h->meanwhile = destroy_headers;
		h->meanwhile_arg = f;
	}
	qhca_rx_shared(h->hca, f->data, f->len, host_clock(h));
	if (h->meanwhile == destroy_headers)
		h->meanwhile = NULL;
}

static bool deliver(struct world *w)
{
	bool any = false;

	while (w->num_flight && w->flight[1].time <= w->now) {
		struct world_frame f = heap_pop(w);

		struct host *h = &w->host[f.to]->host;

		if (w->memory)
			deliver_shared(h, &f);
		else
			qhca_rx_frame(h->hca, f.data, f.len, host_clock(h));
		free(f.data);
		any = true;
	}
	return any;
}

/* What is on its way to the host finds nobody, where frames get lost at all. */
static void lose_flight(struct world *w, unsigned int host)
{
	struct world_frame *flight = w->flight;
	uint32_t num = w->num_flight;

	if (!w->link.loss || world_chance(w, MILLION / 2))
		return;
	w->flight = NULL;
	w->num_flight = w->cap_flight = 0;
	for (uint32_t i = 1; i <= num; i++)
		if (flight[i].to == host)
			free(flight[i].data);
		else
			heap_push(w, flight[i]);
	free(flight);
}

void world_migrate(struct world *w, struct host *h, uint64_t skew)
{
	host_migrate(h, skew);
	w->moved++;
	if (w->memory)
		qhca_link_without_icrc(h->hca, true);
	if (w->verbose)
		qhca_trace_mask(h->hca, ~(1ull << QHCA_TRACE_CACHE_MISS));
}

/* A host moves to a machine whose clock may be ahead or behind. */
static void move_some(struct world *w)
{
	for (unsigned int i = 0; i < w->num_hosts; i++) {
		struct host *h = &w->host[i]->host;

		if (!world_chance(w, w->link.migrate))
			continue;
		lose_flight(w, i);
		w->blocked[i] = false;
		world_migrate(w, h, world_chance(w, MILLION / 2) ?
				    world_rand(w) : 0);
	}
}

bool world_step(struct world *w, uint64_t until)
{
	uint64_t next = QHCA_NEVER;
	bool busy;

	move_some(w);
	busy = deliver(w);
	for (unsigned int i = 0; i < w->num_hosts; i++) {
		const struct host *h = &w->host[i]->host;
		struct qhca_run_result r;

		if (w->blocked[i] && world_chance(w, UNBLOCK_PPM)) {
			w->blocked[i] = false;
			qhca_tx_ready(w->host[i]->host.hca, host_clock(&w->host[i]->host));
		}
		r = qhca_run(h->hca, host_clock(h), w->budget ? w->budget : 1 + world_pick(w, 40));
		busy |= r.more || w->blocked[i];
		if (r.deadline != QHCA_NEVER)
			r.deadline = r.deadline > h->skew ?
				     r.deadline - h->skew : 0;
		if (r.deadline < next)
			next = r.deadline;
	}
	if (w->num_flight && w->flight[1].time < next)
		next = w->flight[1].time;
	if (!busy && next == QHCA_NEVER)
		return false;
	/* An engine whose deadline stays in the past makes its host spin. */
	w->late = busy || next > w->now ? 0 : w->late + 1;
	if (w->late == MAX_LATE)
		host_die("at %llu ns an engine has nothing to do and does not rest",
			 (unsigned long long)w->now);
	if (busy)
		next = w->now + 1 + world_pick(w, STEP_NS);
	if (next > until)
		next = until;
	set_time(w, next > w->now ? next : w->now + 1);
	return true;
}

void world_wait(struct world *w, uint64_t until)
{
	if (!world_step(w, until))
		set_time(w, until);
}

void world_run(struct world *w, uint64_t until)
{
	while (w->now < until && world_step(w, until))
		;
}
