/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of qhca-raw share.
 */
#ifndef RAW_H
#define RAW_H

#include "lib/counters.h"
#include "lib/peer.h"
#include "lib/tap.h"

#define SLOT		2048u		/* bytes of a frame's buffer */
#define RECEIVES	128
#define INLINE		128u
#define OURS		7001		/* the port that rules are for */
#define ANOTHER		7002
#define UNTAGGED	-1
#define VLAN		9
#define HEADERS		42u		/* Ethernet, IPv4, UDP */
#define SHORTEST	18u		/* data of a frame of 60 bytes */
#define SOON		20000		/* ms */

struct address {
	uint8_t mac[6];
	uint8_t ip[4];
};

struct run {
	struct peer peer;
	struct address here, there;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;			/* slots of receives, and one to send from */
	int sock[2];			/* receiver: UDP, bound to OURS and ANOTHER */
	struct counters counters;	/* receiver: frames dropped */
	struct failure failure;
};

struct rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4 ip;
	struct ibv_flow_spec_tcp_udp udp;
};

/* frames.c */
void fill(uint8_t *data, uint32_t len, uint32_t seq);
/* UDP with @len bytes of data from one to the other; returns the frame's length. */
uint32_t build(uint8_t *frame, const struct address *from, const struct address *to,
	       int vlan, uint16_t port, uint32_t seq, uint32_t len);
uint32_t data_length(uint32_t seq);
/* A raw frame to @to, which has left when this returns. */
void send_frame(struct run *r, const struct address *to, int vlan, uint16_t port,
		uint32_t seq, uint32_t len);
/* A datagram by way of the interface. */
void send_datagram(struct run *r, uint16_t port, uint32_t seq, uint32_t len);
const uint8_t *next_frame(struct run *r, uint32_t *len);
void expect_frame(struct run *r, const struct address *to, int vlan, uint16_t port,
		  uint32_t seq, uint32_t data);
void expect_no_frame(struct run *r);
void expect_datagram(struct run *r, uint16_t port, uint32_t seq, uint32_t len);
void expect_no_datagram(struct run *r, uint16_t port);
/* What a case that went wrong has left is not for the next. */
void drop_datagrams(struct run *r);
uint64_t frames_dropped(struct run *r);

/* rules.c */
void make_qp(struct run *r);
void end_qp(struct run *r);
void give_receives(struct run *r, unsigned int n);
/* UDP to our address and the port, in a VLAN or whether tagged or not. */
struct rule rule_for(const struct run *r, int vlan, uint16_t port);
struct ibv_flow *add_rule(struct run *r, struct ibv_flow_attr *attr);
struct ibv_flow *add_plain_rule(struct run *r, enum ibv_flow_attr_type type);
void end_rule(struct ibv_flow *flow);

#endif /* RAW_H */
