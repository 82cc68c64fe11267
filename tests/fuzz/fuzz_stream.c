// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The switch with peers whose streams are hostile: the reader of the stream format, and
 * the model behind it, while settings change, peers come and go, and time passes.
 *
 * A plain reader of the same bytes says what the peers have sent. Each frame that a port
 * delivers must be one of those, and every frame must be accounted for by the counters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "target.h"

#include "model/fabric.h"
#include "program/stream.h"

#define PORTS		4u
#define MAX_BYTES	8192u

struct peer {
	struct sw_stream in;
	bool here;
	/* What the plain reader has of this connection. */
	uint8_t bytes[MAX_BYTES];
	size_t have, at;
	uint64_t frames, octets;	/* since the port was added */
};

static struct fab_switch *sw;
static struct peer peer[PORTS];

#define must(condition)							\
	do {								\
		if (!(condition)) {					\
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();					\
		}							\
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_one(data, size);
	return 0;
}

static void come(unsigned int n)
{
	sw_stream_reset(&peer[n].in);
	peer[n].have = peer[n].at = 0;
	peer[n].here = true;
	fab_port_set_peer(sw, n, true);
}

static void go(unsigned int n)
{
	sw_stream_reset(&peer[n].in);
	peer[n].here = false;
	fab_port_set_peer(sw, n, false);
	must(!sw->port[n].backlog.bytes && !sw->table.of_port[n]);
}

/* The next frame by the plain reader: its length, or -1: it is not complete, -2: a lie. */
static int64_t plain_next(struct peer *p, const uint8_t **frame)
{
	const uint8_t *b = p->bytes + p->at;
	uint64_t left = p->have - p->at, len;

	if (left < 4)
		return -1;
	len = (uint64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
	if (len > FAB_MAX_FRAME)
		return -2;
	if (left - 4 < len)
		return -1;
	*frame = b + 4;
	p->at += 4 + len;
	return (int64_t)len;
}

/* A frame from and to addresses of which there are few, and its head. */
static void make_frame(struct in *in, uint8_t *bytes, size_t len)
{
	static const uint64_t addresses[] = {
		0x020000000001, 0x020000000002, 0x020000000003, 0x020000000004,
		0xffffffffffff, 0x0180c2000001, 0x020000000005, 0x020000000006,
	};
	uint8_t who = in_u8(in);

	memset(bytes, who, len);
	memset(bytes, 0, 4);
	bytes[3] = (uint8_t)(len - 4);
	fab_mac_bytes(addresses[who & 7], bytes + 4);
	fab_mac_bytes(addresses[who >> 3 & 7], bytes + 10);
}

/* Bytes come from a peer: any, or a frame, of which perhaps only a part comes. */
static void receive(struct in *in, unsigned int n)
{
	struct peer *p = &peer[n];
	uint8_t how = in_u8(in);
	size_t len = how & 1 ? 18 + in_below(in, 200) : in_below(in, 256), left;
	const uint8_t *at, *plain;
	uint8_t *copy;

	if (!p->here || len > MAX_BYTES - p->have)
		return;
	/* Memory of its own, so that nothing behind it is read. */
	copy = malloc(len ? len : 1);
	must(copy);
	if (how & 1)
		make_frame(in, copy, len);
	else
		in_fill(in, copy, len);
	if (how & 1 && how >= 0xe0)
		len -= how & 0xe;
	memcpy(p->bytes + p->have, copy, len);
	p->have += len;
	at = copy;
	left = len;
	for (;;) {
		struct fab_frame *frame = NULL;
		enum sw_stream_result result = sw_stream_read(&p->in, &at, &left, &frame);
		int64_t wanted = plain_next(p, &plain);

		must(result == SW_STREAM_FRAME ? wanted >= 0 :
		     result == SW_STREAM_BAD_LENGTH ? wanted == -2 : wanted == -1);
		if (result == SW_STREAM_BAD_LENGTH)
			go(n);
		if (result != SW_STREAM_FRAME)
			break;
		must(frame->len == wanted && !memcmp(frame->data, plain, (size_t)wanted));
		p->frames++;
		p->octets += frame->len;
		fab_receive(sw, n, frame);
	}
	free(copy);
}

static void take(struct in *in, unsigned int n)
{
	unsigned int most = in_below(in, 8);
	struct fab_frame *due;

	while (most-- && (due = fab_port_due(sw, n, 0))) {
		must(fab_port_sent(sw, n) == due);
		must(due->len >= FAB_ETH_HLEN && due->refs >= 1);
		must(due->head[2] == (uint8_t)(due->len >> 8) && due->head[3] == (uint8_t)due->len);
		fab_frame_put(due);
	}
}

static void change(struct in *in, unsigned int n)
{
	struct fab_settings set = sw->port[n].set;

	set.rate = in_number(in);
	set.burst = in_number(in);
	set.latency = in_number(in);
	set.queue = in_number(in);
	set.macs = (uint32_t)in_number(in);
	set.link = in_u8(in) & 7;
	if (!fab_settings_wrong(&set)) {
		fab_port_set(sw, n, &set);
	} else {
		set = sw->port[n].set;
		set.rate = FAB_MIN_RATE << in_below(in, 30);
		set.latency = in_below(in, 100000);
		set.macs = in_below(in, 4);
		must(!fab_settings_wrong(&set));
		fab_port_set(sw, n, &set);
	}
}

/* Time passes, by what the model says or by a jump. */
static void pass(struct in *in)
{
	uint64_t deadline = fab_deadline(sw);

	must(deadline > sw->now);
	if (in_u8(in) & 1 && deadline != FAB_NEVER)
		fab_advance(sw, deadline);
	else
		fab_advance(sw, sw->now + in_below(in, 1u << 30));
}

static void check(void)
{
	uint32_t macs = 0;

	for (unsigned int n = 0; n < PORTS; n++) {
		const struct fab_port *p = &sw->port[n];
		const struct fab_counters *c = &p->count;
		uint64_t bytes = 0;

		must(c->rx_frames == peer[n].frames && c->rx_bytes == peer[n].octets);
		must(c->rx_runts + c->rx_link_down + c->rx_bad_source + c->rx_link_local +
		     c->rx_own_side + c->rx_flooded <= c->rx_frames);
		for (uint32_t i = p->backlog.head; i != p->backlog.tail; i++)
			bytes += fab_frame_wire_bytes(p->backlog.ring[i & (p->backlog.size - 1)].frame);
		must(bytes == p->backlog.bytes);
		must((p->leaves == FAB_NEVER) == (p->backlog.split == p->backlog.tail));
		must(p->peak >= p->backlog.bytes);
		macs += sw->table.of_port[n];
	}
	must(macs == sw->table.num);
}

uint64_t fuzz_one(const uint8_t *data, size_t size)
{
	struct in in = { data, data + size };
	struct fab_settings set;
	struct fab_config cfg;

	fab_config_default(&cfg);
	cfg.ports = PORTS;
	cfg.table = 8;
	fab_settings_default(&set);
	sw = fab_switch_new(&cfg);
	must(sw);
	memset(peer, 0, sizeof(peer));
	for (unsigned int n = 0; n < PORTS; n++) {
		must(fab_port_add(sw, &set) == (int)n);
		come(n);
	}
	while (in_more(&in)) {
		uint8_t what = in_u8(&in);
		unsigned int n = what & 3;

		switch (what >> 2 & 15) {
		case 0:
			go(n);
			break;
		case 1:
			change(&in, n);
			break;
		case 2:
		case 3:
			take(&in, n);
			break;
		case 4:
		case 5:
			pass(&in);
			break;
		default:
			if (!peer[n].here)
				come(n);
			receive(&in, n);
		}
		check();
	}
	for (unsigned int n = 0; n < PORTS; n++)
		sw_stream_reset(&peer[n].in);
	fab_switch_free(sw);
	return 0;
}
