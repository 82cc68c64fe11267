// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames and datagrams: how they are built, sent, and expected. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

static void put16(uint8_t *p, uint16_t value)
{
	p[0] = value >> 8;
	p[1] = value;
}

static uint16_t header_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

void fill(uint8_t *data, uint32_t len, uint32_t seq)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = seq * 31 + i * 7 + (i >> 8);
}

uint32_t build(uint8_t *frame, const struct address *from, const struct address *to,
	       int vlan, uint16_t port, uint32_t seq, uint32_t len)
{
	uint8_t *p = frame + 12;

	memset(frame, 0, HEADERS + 4);
	memcpy(frame, to->mac, 6);
	memcpy(frame + 6, from->mac, 6);
	if (vlan != UNTAGGED) {
		put16(p, 0x8100);
		put16(p + 2, vlan);
		p += 4;
	}
	put16(p, 0x0800);
	p += 2;
	p[0] = 0x45;
	put16(p + 2, 28 + len);
	p[8] = 64;
	p[9] = IPPROTO_UDP;
	memcpy(p + 12, from->ip, 4);
	memcpy(p + 16, to->ip, 4);
	put16(p + 10, header_sum(p));
	p += 20;
	put16(p, OURS);
	put16(p + 2, port);
	put16(p + 4, 8 + len);		/* no checksum */
	fill(p + 8, len, seq);
	return p + 8 + len - frame;
}

uint32_t data_length(uint32_t seq)
{
	return SHORTEST + seq * 97 % (1472 - SHORTEST);
}

static bool next_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t end = now_ns() + SOON * 1000000ull;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (!n)
			usleep(50);	/* the adapter may share this processor */
	} while (!n && now_ns() < end);
	return n == 1;
}

void send_frame(struct run *r, const struct address *to, int vlan, uint16_t port,
		uint32_t seq, uint32_t len)
{
	uint8_t *frame = r->buf + RECEIVES * SLOT;
	uint32_t all = build(frame, &r->here, to, vlan, port, seq, len);
	struct ibv_sge sge[2] = {
		{ (uintptr_t)frame, 20, r->mr->lkey },
		{ (uintptr_t)frame + 20, all - 20, r->mr->lkey },
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2,
		.send_flags = IBV_SEND_SIGNALED | (all <= INLINE ? IBV_SEND_INLINE : 0),
	}, *bad;
	struct ibv_wc wc;
	int rc = ibv_post_send(r->qp, &wr, &bad);

	if (rc)
		die("ibv_post_send: %s", strerror(rc));
	if (!next_wc(r->send_cq, &wc) || wc.status != IBV_WC_SUCCESS)
		die("frame %u does not leave", seq);
}

void send_datagram(struct run *r, uint16_t port, uint32_t seq, uint32_t len)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int sock = socket(AF_INET, SOCK_DGRAM, 0);
	uint8_t data[SLOT];

	memcpy(&to.sin_addr, r->there.ip, 4);
	fill(data, len, seq);
	if (sendto(sock, data, len, 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)len)
		die("sendto: %s", strerror(errno));
	close(sock);
}

const uint8_t *next_frame(struct run *r, uint32_t *len)
{
	struct ibv_wc wc;

	if (r->failure.text[0] || !EXPECT(r, next_wc(r->recv_cq, &wc), "no frame") ||
	    !EXPECT(r, wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV &&
		    wc.qp_num == r->qp->qp_num, "a receive ends with status %d", wc.status))
		return NULL;
	*len = wc.byte_len;
	return r->buf + wc.wr_id * SLOT;
}

void expect_frame(struct run *r, const struct address *to, int vlan, uint16_t port,
		  uint32_t seq, uint32_t data)
{
	uint8_t want[SLOT];
	uint32_t len, all = build(want, &r->there, to, vlan, port, seq, data);
	const uint8_t *got = next_frame(r, &len);

	if (got)
		EXPECT(r, len == all && !memcmp(got, want, all), "frame %u is not as it was sent: "
		       "%u bytes of %u", seq, len, all);
}

void expect_no_frame(struct run *r)
{
	struct ibv_wc wc;

	EXPECT(r, !ibv_poll_cq(r->recv_cq, 1, &wc), "a frame that no rule is for");
}

void expect_datagram(struct run *r, uint16_t port, uint32_t seq, uint32_t len)
{
	struct pollfd fd = { .fd = r->sock[port - OURS], .events = POLLIN };
	uint8_t want[SLOT], got[SLOT];
	ssize_t n;

	if (r->failure.text[0] || !EXPECT(r, poll(&fd, 1, SOON) == 1, "no datagram %u", seq))
		return;
	fill(want, len, seq);
	n = recv(fd.fd, got, sizeof(got), 0);
	EXPECT(r, n == (ssize_t)len && !memcmp(got, want, len), "datagram %u is not as it was sent",
	       seq);
}

void expect_no_datagram(struct run *r, uint16_t port)
{
	char c;

	EXPECT(r, recv(r->sock[port - OURS], &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN,
	       "the interface has what the rule takes");
}

void drop_datagrams(struct run *r)
{
	char c;

	for (int i = 0; i < 2; i++)
		while (recv(r->sock[i], &c, 1, MSG_DONTWAIT) >= 0)
			;
}

uint64_t frames_dropped(struct run *r)
{
	uint64_t value;

	counters_read(&r->counters, &value);
	return value;
}
