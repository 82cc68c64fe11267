// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The switch: ports, learning, forwarding. fabric.h explains them. */
#include "fabric.h"

#include <stdlib.h>
#include <string.h>

#define GROUP		(1ull << 40)
/* Frames to these addresses concern a link, and bridges do not forward them (802.1Q). */
#define LINK_LOCAL	0x0180c2000000ull

void fab_config_default(struct fab_config *cfg)
{
	*cfg = (struct fab_config){
		.ports = FAB_DEFAULT_PORTS,
		.table = FAB_DEFAULT_TABLE,
		.age = FAB_DEFAULT_AGE,
	};
}

void fab_settings_default(struct fab_settings *set)
{
	*set = (struct fab_settings){
		.queue = FAB_DEFAULT_QUEUE,
		.macs = FAB_DEFAULT_MACS,
		.link = true,
	};
}

const char *fab_config_wrong(const struct fab_config *cfg)
{
	if (!cfg->ports || cfg->ports > FAB_MAX_PORTS)
		return "a switch has 1 to 256 ports";
	if (!cfg->table || cfg->table > FAB_MAX_MACS)
		return "the MAC table has 1 to 65536 entries";
	if (cfg->age < FAB_MIN_AGE || cfg->age > FAB_MAX_AGE)
		return "addresses age in 1 s to 1000000 s";
	return NULL;
}

const char *fab_settings_wrong(const struct fab_settings *set)
{
	if (set->rate && (set->rate < FAB_MIN_RATE || set->rate > FAB_MAX_RATE))
		return "a rate is 0, for none, or 1000 to 1000000000000 bit/s";
	if (set->burst > FAB_MAX_BURST)
		return "a burst is at most 67108864 bytes";
	if (set->latency > FAB_MAX_LATENCY)
		return "a latency is at most 10 s";
	if (set->queue < FAB_MIN_QUEUE || set->queue > FAB_MAX_QUEUE)
		return "a queue has 69656 to 1073741824 bytes";
	if (set->macs > FAB_MAX_MACS)
		return "at most 65536 addresses are learned behind a port";
	return NULL;
}

struct fab_switch *fab_switch_new(const struct fab_config *cfg)
{
	struct fab_switch *sw = calloc(1, sizeof(*sw));

	if (!sw)
		return NULL;
	sw->cfg = *cfg;
	sw->port = calloc(cfg->ports, sizeof(*sw->port));
	if (!sw->port || !fab_mac_table_init(&sw->table, cfg->table, cfg->ports,
					     cfg->age, cfg->seed)) {
		free(sw->port);
		free(sw);
		return NULL;
	}
	return sw;
}

void fab_switch_free(struct fab_switch *sw)
{
	if (!sw)
		return;
	for (unsigned int i = 0; i < sw->cfg.ports; i++)
		fab_backlog_flush(&sw->port[i].backlog);
	fab_mac_table_fini(&sw->table);
	free(sw->port);
	free(sw);
}

/* When does the frame that has waited longest leave the queue? */
static void schedule(struct fab_port *p)
{
	const struct fab_held *held = fab_backlog_waiting(&p->backlog);
	uint64_t from;

	if (!held) {
		p->leaves = FAB_NEVER;
		return;
	}
	from = held->time > p->earliest ? held->time : p->earliest;
	p->leaves = fab_shaper_depart(&p->shaper, from, fab_frame_wire_bytes(held->frame));
}

/* Moves on what leaves the queue until now. */
static void run_port(struct fab_port *p, uint64_t now)
{
	while (p->leaves <= now) {
		fab_backlog_depart(&p->backlog, p->leaves + p->set.latency);
		p->earliest = p->leaves;
		schedule(p);
	}
}

/* Starts the schedule anew: after a change of the rate, or with nothing held. */
static void restart(struct fab_port *p, uint64_t now)
{
	fab_shaper_set(&p->shaper, p->set.rate, p->set.burst, now);
	p->earliest = now;
	schedule(p);
}

static void drop_all(struct fab_switch *sw, struct fab_port *p)
{
	p->count.tx_link_down += fab_backlog_flush(&p->backlog);
	restart(p, sw->now);
}

int fab_port_add(struct fab_switch *sw, const struct fab_settings *set)
{
	for (unsigned int i = 0; i < sw->cfg.ports; i++) {
		struct fab_port *p = &sw->port[i];

		if (p->exists)
			continue;
		*p = (struct fab_port){ .exists = true, .set = *set };
		restart(p, sw->now);
		return (int)i;
	}
	return -1;
}

void fab_port_remove(struct fab_switch *sw, unsigned int port)
{
	fab_port_set_peer(sw, port, false);
	sw->port[port].exists = false;
}

void fab_port_set_peer(struct fab_switch *sw, unsigned int port, bool peer)
{
	struct fab_port *p = &sw->port[port];

	p->peer = peer;
	if (peer)
		return;
	drop_all(sw, p);
	fab_mac_table_forget(&sw->table, (uint16_t)port);
}

void fab_port_set(struct fab_switch *sw, unsigned int port,
		  const struct fab_settings *set)
{
	struct fab_port *p = &sw->port[port];
	bool new_rate = set->rate != p->set.rate || set->burst != p->set.burst;

	p->set = *set;
	if (!set->link) {
		drop_all(sw, p);
		fab_mac_table_forget(&sw->table, (uint16_t)port);
	} else if (new_rate) {
		restart(p, sw->now);
		run_port(p, sw->now);
	}
}

void fab_port_clear(struct fab_switch *sw, unsigned int port)
{
	struct fab_port *p = &sw->port[port];

	p->count = (struct fab_counters){ .rx_frames = 0 };
	p->peak = p->backlog.bytes;
}

/*
 * Gives a frame to a port that has a peer and a link, as every port in the MAC table
 * does. The port takes a reference of its own.
 */
static void give(struct fab_switch *sw, unsigned int port, struct fab_frame *frame)
{
	struct fab_port *p = &sw->port[port];
	uint32_t bytes = fab_frame_wire_bytes(frame);

	/* After the limit was lowered the port may hold more than that. */
	if (p->backlog.bytes > p->set.queue || bytes > p->set.queue - p->backlog.bytes ||
	    !fab_backlog_push(&p->backlog, frame, sw->now)) {
		p->count.tx_queue_full++;
		return;
	}
	fab_frame_get(frame);
	if (p->backlog.bytes > p->peak)
		p->peak = p->backlog.bytes;
	if (p->leaves == FAB_NEVER)
		schedule(p);
	run_port(p, sw->now);
}

static void flood(struct fab_switch *sw, unsigned int from, struct fab_frame *frame)
{
	sw->port[from].count.rx_flooded++;
	for (unsigned int i = 0; i < sw->cfg.ports; i++)
		if (i != from && sw->port[i].peer && sw->port[i].set.link)
			give(sw, i, frame);
}

static void learn(struct fab_switch *sw, unsigned int port, uint64_t source)
{
	struct fab_port *p = &sw->port[port];

	switch (fab_mac_table_learn(&sw->table, source, (uint16_t)port, p->set.macs, sw->now)) {
	case FAB_LEARNED_NEW:
		p->count.macs_learned++;
		break;
	case FAB_LEARNED_MOVED:
		p->count.macs_moved++;
		break;
	case FAB_LEARNED_REFUSED:
		p->count.macs_refused++;
		break;
	case FAB_LEARNED_KNOWN:
		break;
	}
}

static void forward(struct fab_switch *sw, unsigned int port, struct fab_frame *frame)
{
	uint64_t to = fab_mac_word(frame->data), source = fab_mac_word(frame->data + 6);
	struct fab_port *p = &sw->port[port];
	int out;

	if (source & GROUP || !source) {
		p->count.rx_bad_source++;
		return;
	}
	learn(sw, port, source);
	if ((to & ~0xfull) == LINK_LOCAL) {
		p->count.rx_link_local++;
		return;
	}
	/* A group is behind no port, since no frame comes from one. */
	out = fab_mac_table_find(&sw->table, to, sw->now);
	if (out < 0)
		flood(sw, port, frame);
	else if ((unsigned int)out == port)
		p->count.rx_own_side++;
	else
		give(sw, (unsigned int)out, frame);
}

void fab_receive(struct fab_switch *sw, unsigned int port, struct fab_frame *frame)
{
	struct fab_port *p = &sw->port[port];

	p->count.rx_frames++;
	p->count.rx_bytes += frame->len;
	if (!p->set.link)
		p->count.rx_link_down++;
	else if (frame->len < FAB_ETH_HLEN)
		p->count.rx_runts++;
	else
		forward(sw, port, frame);
	fab_frame_put(frame);
}

void fab_advance(struct fab_switch *sw, uint64_t now)
{
	if (now > sw->now)
		sw->now = now;
	for (unsigned int i = 0; i < sw->cfg.ports; i++)
		if (sw->port[i].exists)
			run_port(&sw->port[i], sw->now);
}

uint64_t fab_deadline(const struct fab_switch *sw)
{
	uint64_t first = FAB_NEVER;

	for (unsigned int i = 0; i < sw->cfg.ports; i++) {
		const struct fab_port *p = &sw->port[i];
		const struct fab_held *held = fab_backlog_on_way(&p->backlog, 0);

		if (!p->exists)
			continue;
		if (p->leaves < first)
			first = p->leaves;
		/* What is due already waits for the peer, and not for a time. */
		if (held && held->time > sw->now && held->time < first)
			first = held->time;
	}
	return first;
}

struct fab_frame *fab_port_due(const struct fab_switch *sw, unsigned int port,
			       size_t index)
{
	const struct fab_held *held = fab_backlog_on_way(&sw->port[port].backlog, index);

	return held && held->time <= sw->now ? held->frame : NULL;
}

struct fab_frame *fab_port_sent(struct fab_switch *sw, unsigned int port)
{
	struct fab_port *p = &sw->port[port];
	struct fab_frame *frame = fab_backlog_pop(&p->backlog);

	p->count.tx_frames++;
	p->count.tx_bytes += frame->len;
	return frame;
}
