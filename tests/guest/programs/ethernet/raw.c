// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-raw: raw packet QPs and flow rules between two machines, beside what their
 * network interfaces send and receive.
 *
 *   qhca-raw -d DEVICE -g GID-INDEX -p PORT [HOST]
 *
 * The GID is that of an IPv4 address. With HOST it is the receiver, which has the
 * rules and prints TAP.
 *
 * Frames of one sender arrive in order, be they for a QP or for the interface. So
 * that something did not arrive is known when what was sent after it has.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"

static void meet(struct run *r)
{
	peer_barrier(&r->peer);
}

/* -- cases: what the sender does, what the receiver expects ------------------- */

#define FRAMES 100

/* Raw frames for the QP reach it, and frames for others reach the interface. */
static void cross_send(struct run *r)
{
	meet(r);
	for (uint32_t i = 0; i < FRAMES; i++)
		send_frame(r, &r->there, UNTAGGED, OURS, i, data_length(i));
	send_frame(r, &r->there, UNTAGGED, ANOTHER, FRAMES, SHORTEST);
}

static void cross_receive(struct run *r)
{
	struct rule rule = rule_for(r, UNTAGGED, OURS);
	struct ibv_flow *flow = add_rule(r, &rule.attr);

	give_receives(r, RECEIVES);
	meet(r);
	for (uint32_t i = 0; i < FRAMES; i++)
		expect_frame(r, &r->here, UNTAGGED, OURS, i, data_length(i));
	expect_datagram(r, ANOTHER, FRAMES, SHORTEST);
	expect_no_datagram(r, OURS);
	expect_no_frame(r);
	end_rule(flow);
}

/* What the interface sends a rule takes, too; without rule it is the interface's. */
static void interface_send(struct run *r)
{
	meet(r);
	send_datagram(r, OURS, 1, 1000);
	send_datagram(r, ANOTHER, 2, 1000);
	meet(r);
	send_datagram(r, OURS, 3, 1000);
	send_frame(r, &r->there, UNTAGGED, OURS, 4, 900);
}

static void interface_receive(struct run *r)
{
	struct rule rule = rule_for(r, UNTAGGED, OURS);
	struct ibv_flow *flow = add_rule(r, &rule.attr);
	uint8_t want[1000];
	const uint8_t *got;
	uint32_t len;

	give_receives(r, 8);
	meet(r);
	got = next_frame(r, &len);
	fill(want, sizeof(want), 1);
	if (got)
		EXPECT(r, len == HEADERS + sizeof(want) && !memcmp(got, r->here.mac, 6) &&
		       !memcmp(got + 6, r->there.mac, 6) &&
		       !memcmp(got + HEADERS, want, sizeof(want)),
		       "the datagram is not in the frame of %u bytes", len);
	expect_datagram(r, ANOTHER, 2, 1000);
	expect_no_datagram(r, OURS);
	end_rule(flow);
	meet(r);
	expect_datagram(r, OURS, 3, 1000);
	expect_datagram(r, OURS, 4, 900);
	expect_no_frame(r);
}

/* A tag is part of the frame and of the rule. */
static void vlan_send(struct run *r)
{
	meet(r);
	send_frame(r, &r->there, VLAN + 1, OURS, 1, 200);
	send_frame(r, &r->there, UNTAGGED, OURS, 2, 200);
	send_frame(r, &r->there, 5 << 13 | VLAN, OURS, 3, 1472);
}

static void vlan_receive(struct run *r)
{
	struct rule rule = rule_for(r, VLAN, OURS);
	struct ibv_flow *flow = add_rule(r, &rule.attr);

	give_receives(r, 8);
	meet(r);
	expect_frame(r, &r->here, 5 << 13 | VLAN, OURS, 3, 1472);
	expect_datagram(r, OURS, 2, 200);
	expect_no_frame(r);
	end_rule(flow);
}

/* Frames that find no receive are dropped and counted; the next is not. */
static void no_receive_send(struct run *r)
{
	meet(r);
	for (uint32_t i = 0; i < 8; i++)
		send_frame(r, &r->there, UNTAGGED, OURS, i, 100);
	send_frame(r, &r->there, UNTAGGED, ANOTHER, 8, 100);
	meet(r);
	send_frame(r, &r->there, UNTAGGED, OURS, 9, 100);
}

static void no_receive_receive(struct run *r)
{
	struct rule rule = rule_for(r, UNTAGGED, OURS);
	struct ibv_flow *flow = add_rule(r, &rule.attr);
	uint64_t before = frames_dropped(r), dropped;

	meet(r);
	expect_datagram(r, ANOTHER, 8, 100);
	dropped = frames_dropped(r) - before;
	EXPECT(r, dropped == 8, "%llu frames counted of 8", (unsigned long long)dropped);
	expect_no_datagram(r, OURS);
	give_receives(r, 4);
	meet(r);
	expect_frame(r, &r->here, UNTAGGED, OURS, 9, 100);
	end_rule(flow);
}

/*
 * Rules of the other types, for each of which the same frames come: one to a group
 * and one to somebody, which the interface does not want, and one that it does.
 */
#define PLAIN_FRAMES 3

static const struct address nobody = { { 0x02, 0, 0, 0x5e, 0, 0x99 }, { 192, 0, 2, 9 } };
static const struct address group = { { 0x01, 0, 0x5e, 0x7f, 0, 0x99 }, { 239, 127, 0, 0x99 } };
static const char *const plain_names[] = { "to a group", "to somebody", "to the interface" };

static const struct {
	enum ibv_flow_attr_type type;
	const char *name;
	bool wants[PLAIN_FRAMES];
} plain_rules[] = {
	{ IBV_FLOW_ATTR_MC_DEFAULT, "a default rule for groups", { true, false, false } },
	{ IBV_FLOW_ATTR_ALL_DEFAULT, "a default rule", { true, true, false } },
	{ IBV_FLOW_ATTR_SNIFFER, "a sniffer", { true, true, true } },
};

#define PLAIN_RULES (sizeof(plain_rules) / sizeof(plain_rules[0]))

static void plain_send(struct run *r)
{
	for (unsigned int i = 0; i < PLAIN_RULES; i++) {
		meet(r);
		send_frame(r, &group, UNTAGGED, OURS, 1, 100);
		send_frame(r, &nobody, UNTAGGED, OURS, 2, 100);
		send_frame(r, &r->there, UNTAGGED, ANOTHER, 3, 100);
		meet(r);
	}
}

/* How often each of them is among the frames that have come, others' aside. */
static void count_frames(struct run *r, unsigned int count[PLAIN_FRAMES])
{
	const struct address *to[] = { &group, &nobody, &r->here };
	uint8_t want[SLOT];
	struct ibv_wc wc;
	uint32_t len;

	while (ibv_poll_cq(r->recv_cq, 1, &wc) > 0) {
		EXPECT(r, wc.status == IBV_WC_SUCCESS, "a receive ends with status %d", wc.status);
		for (unsigned int i = 0; i < PLAIN_FRAMES; i++) {
			len = build(want, &r->there, to[i], UNTAGGED,
				    to[i] == &r->here ? ANOTHER : OURS, i + 1, 100);
			count[i] += wc.byte_len == len &&
				    !memcmp(r->buf + wc.wr_id * SLOT, want, len);
		}
	}
}

static void plain_receive(struct run *r)
{
	give_receives(r, RECEIVES);
	for (unsigned int i = 0; i < PLAIN_RULES; i++) {
		struct ibv_flow *flow = add_plain_rule(r, plain_rules[i].type);
		unsigned int count[PLAIN_FRAMES] = { 0 };

		meet(r);
		expect_datagram(r, ANOTHER, 3, 100);
		meet(r);	/* the frame that proves this came after them */
		end_rule(flow);
		count_frames(r, count);
		for (unsigned int k = 0; k < PLAIN_FRAMES; k++)
			EXPECT(r, count[k] == plain_rules[i].wants[k],
			       "%s gives %u times the frame %s", plain_rules[i].name, count[k],
			       plain_names[k]);
	}
}

/* The QP goes while frames come for it, and another takes its place. */
static void vanish_send(struct run *r)
{
	meet(r);
	for (uint32_t i = 0; i < 4 * FRAMES; i++)
		send_frame(r, &r->there, UNTAGGED, OURS, i, 64);
	meet(r);	/* all have arrived */
	meet(r);	/* there is a rule again */
	send_frame(r, &r->there, UNTAGGED, OURS, 1, 700);
	send_frame(r, &r->there, UNTAGGED, ANOTHER, 2, 700);
}

static void vanish_receive(struct run *r)
{
	struct rule rule = rule_for(r, UNTAGGED, OURS);
	struct ibv_flow *flow = add_rule(r, &rule.attr);
	char c;

	give_receives(r, RECEIVES);
	meet(r);
	for (uint32_t i = 0; i < 10; i++)
		expect_frame(r, &r->here, UNTAGGED, OURS, i, 64);
	end_rule(flow);
	end_qp(r);
	make_qp(r);
	meet(r);
	while (recv(r->sock[0], &c, 1, MSG_DONTWAIT) >= 0)
		;			/* frames that found no rule */
	give_receives(r, 4);
	flow = add_rule(r, &rule.attr);
	meet(r);
	expect_frame(r, &r->here, UNTAGGED, OURS, 1, 700);
	expect_datagram(r, ANOTHER, 2, 700);
	expect_no_datagram(r, OURS);
	end_rule(flow);
}

/* -- what is refused -------------------------------------------------------- */

static void expect_refused(struct run *r, struct ibv_qp *qp, struct ibv_flow_attr *attr, int err,
			   const char *what)
{
	struct ibv_flow *flow = ibv_create_flow(qp, attr);

	if (EXPECT(r, !flow, "%s is not refused", what))
		EXPECT(r, errno == err, "%s gives \"%s\", not \"%s\"", what, strerror(errno),
		       strerror(err));
	if (flow)
		ibv_destroy_flow(flow);
}

/* In a process that gives up CAP_NET_RAW; its exit status says what went wrong. */
static int without_privilege(const struct run *r)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1 },
	};
	struct ibv_context *ctx;

	if (setgid(65534) || setuid(65534))
		return 1;
	ctx = device_open(ibv_get_device_name(r->peer.ctx->device));
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 2, NULL, NULL, 0);
	if (!init.send_cq)
		return 2;
	if (ibv_create_qp(ibv_alloc_pd(ctx), &init) || errno != EPERM)
		return 3;
	init.qp_type = IBV_QPT_UD;
	return ibv_create_qp(ibv_alloc_pd(ctx), &init) ? 0 : 4;
}

static void refused_receive(struct run *r)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = r->send_cq, .recv_cq = r->recv_cq,
		.cap = { 1, 1, 1, 1 },
	};
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_ipv4_ext ip;
	} flags = {
		.attr = { .size = sizeof(flags), .num_of_specs = 1, .port = 1 },
		.ip = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(flags.ip),
			.mask = { .flags = 1 } },
	};
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_ipv4 ip[2];
	} twice = { .attr = { .size = sizeof(twice), .num_of_specs = 2, .port = 1 } };
	struct ibv_sge sge = { (uintptr_t)r->buf, 60, r->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				  .send_flags = IBV_SEND_IP_CSUM }, *bad;
	struct ibv_qp *ud = ibv_create_qp(r->pd, &init);
	struct rule rule = rule_for(r, UNTAGGED, OURS);
	int status = -1;
	pid_t pid;

	if (!ud)
		die("ibv_create_qp: %s", strerror(errno));
	expect_refused(r, ud, &rule.attr, EOPNOTSUPP, "a rule for a UD QP");
	ibv_destroy_qp(ud);
	twice.ip[0] = twice.ip[1] = rule.ip;
	expect_refused(r, r->qp, &twice.attr, EINVAL, "a rule with two IPv4 headers");
	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	expect_refused(r, r->qp, &rule.attr, EOPNOTSUPP, "a rule for what is sent");
	expect_refused(r, r->qp, &flags.attr, EOPNOTSUPP, "a rule about IPv4's flags");
	EXPECT(r, ibv_post_send(r->qp, &wr, &bad) == EINVAL && bad == &wr,
	       "a checksum that nobody computes is not refused");

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(without_privilege(r));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("no process without privilege: %s", strerror(errno));
	EXPECT(r, !status, "without privilege: status %#x", status);
}

static void nothing(struct run *r)
{
	(void)r;
}

static const struct {
	const char *name;
	void (*send)(struct run *r);
	void (*receive)(struct run *r);
} cases[] = {
	{ "frames cross", cross_send, cross_receive },
	{ "the interface's frames", interface_send, interface_receive },
	{ "VLAN tags", vlan_send, vlan_receive },
	{ "no receive", no_receive_send, no_receive_receive },
	{ "default rules and sniffers", plain_send, plain_receive },
	{ "a QP goes under traffic", vanish_send, vanish_receive },
	{ "what is refused", nothing, refused_receive },
};

#define NUM_CASES (sizeof(cases) / sizeof(cases[0]))

/* -- set-up ----------------------------------------------------------------- */

static void read_address(struct run *r)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	char path[200], name[IFNAMSIZ + 1] = "";
	uint8_t *m = r->here.mac;
	FILE *f;

	if (memcmp(r->peer.gid.raw, mapped, sizeof(mapped)))
		die("the GID is not of an IPv4 address");
	memcpy(r->here.ip, r->peer.gid.raw + 12, 4);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/%d",
		 ibv_get_device_name(r->peer.ctx->device), r->peer.gid_index);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%16s", name) != 1)
		die("%s: %s", path, strerror(errno));
	fclose(f);
	snprintf(path, sizeof(path), "/sys/class/net/%s/address", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4,
			 m + 5) != 6)
		die("%s: %s", path, strerror(errno));
	fclose(f);
	peer_exchange(&r->peer, &r->here, &r->there, sizeof(r->here));
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	if (sock < 0 || bind(sock, (struct sockaddr *)&any, sizeof(any)))
		die("cannot bind to port %u: %s", port, strerror(errno));
	return sock;
}

static void set_up(struct run *r)
{
	static const char *const dropped[] = { "raw_rx_dropped", NULL };
	size_t size = (RECEIVES + 1) * SLOT;

	peer_open(&r->peer);
	read_address(r);
	r->pd = ibv_alloc_pd(r->peer.ctx);
	r->send_cq = ibv_create_cq(r->peer.ctx, 16, NULL, NULL, 0);
	r->recv_cq = ibv_create_cq(r->peer.ctx, RECEIVES, NULL, NULL, 0);
	r->buf = calloc(1, size);
	if (!r->pd || !r->send_cq || !r->recv_cq || !r->buf)
		die("cannot create PD and CQs: %s", strerror(errno));
	r->mr = ibv_reg_mr(r->pd, r->buf, size, IBV_ACCESS_LOCAL_WRITE);
	if (!r->mr)
		die("ibv_reg_mr: %s", strerror(errno));
	if (r->peer.server)
		return;
	for (int i = 0; i < 2; i++)
		r->sock[i] = listen_on(OURS + i);
	counters_open(&r->counters, r->peer.ctx, r->peer.gid_index, dropped);
}

static void tear_down(struct run *r)
{
	if (ibv_dereg_mr(r->mr) || ibv_destroy_cq(r->recv_cq) || ibv_destroy_cq(r->send_cq) ||
	    ibv_dealloc_pd(r->pd))
		die("something is still in use: %s", strerror(errno));
	if (!r->peer.server)
		counters_close(&r->counters);
	peer_close(&r->peer);
}

int main(int argc, char **argv)
{
	struct run r = { .peer = { .port = 18515 } };
	int c;

	while ((c = getopt(argc, argv, PEER_OPTIONS)) != -1)
		if (!peer_option(&r.peer, c, optarg))
			die("usage: qhca-raw [-d DEVICE] [-g GID-INDEX] [-p PORT] [HOST]");
	r.peer.host = argv[optind];
	set_up(&r);
	for (unsigned int i = 0; i < NUM_CASES; i++) {
		make_qp(&r);
		(r.peer.server ? cases[i].send : cases[i].receive)(&r);
		meet(&r);
		end_qp(&r);
		if (r.peer.server)
			continue;
		drop_datagrams(&r);
		if (r.failure.text[0])
			printf("# %s\n", r.failure.text);
		tap_point(!r.failure.text[0], "%s", cases[i].name);
		r.failure.text[0] = 0;
	}
	tear_down(&r);
	return tap_end();
}
