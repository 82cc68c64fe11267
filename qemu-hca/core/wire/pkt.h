/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Transport headers of RoCEv2 packets: BTH and what follows it (IBTA
 * chapter 9.2 to 9.4), and the Ethernet, IP and UDP headers before it.
 */
#ifndef HCA_CORE_PKT_H
#define HCA_CORE_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qhca.h"

/* Wire opcodes: service in the top three bits, operation below. */
#define HCA_SVC_MASK		0xe0u
#define HCA_SVC_RC		0x00u
#define HCA_SVC_UC		0x20u
#define HCA_SVC_UD		0x60u
#define HCA_SVC_CNP		0x80u
#define HCA_SVC_XRC		0xa0u
#define HCA_SVC_NONE		0x01u	/* of no packet */

enum hca_op {
	HCA_OP_SEND_FIRST	= 0x00,
	HCA_OP_SEND_MIDDLE	= 0x01,
	HCA_OP_SEND_LAST	= 0x02,
	HCA_OP_SEND_LAST_IMM	= 0x03,
	HCA_OP_SEND_ONLY	= 0x04,
	HCA_OP_SEND_ONLY_IMM	= 0x05,
	HCA_OP_WRITE_FIRST	= 0x06,
	HCA_OP_WRITE_MIDDLE	= 0x07,
	HCA_OP_WRITE_LAST	= 0x08,
	HCA_OP_WRITE_LAST_IMM	= 0x09,
	HCA_OP_WRITE_ONLY	= 0x0a,
	HCA_OP_WRITE_ONLY_IMM	= 0x0b,
	HCA_OP_READ_REQ		= 0x0c,
	HCA_OP_READ_RESP_FIRST	= 0x0d,
	HCA_OP_READ_RESP_MIDDLE = 0x0e,
	HCA_OP_READ_RESP_LAST	= 0x0f,
	HCA_OP_READ_RESP_ONLY	= 0x10,
	HCA_OP_ACK		= 0x11,
	HCA_OP_ATOMIC_ACK	= 0x12,
	HCA_OP_CMP_SWAP		= 0x13,
	HCA_OP_FETCH_ADD	= 0x14,
	HCA_OP_SEND_LAST_INV	= 0x16,
	HCA_OP_SEND_ONLY_INV	= 0x17,
	HCA_OP_FLUSH		= 0x1c,
	HCA_OP_ATOMIC_WRITE	= 0x1d,
	HCA_NUM_OPS		= 0x20,
};

/* What a packet with some operation carries, and its place in a message. */
#define HCA_H_RETH	0x0001u
#define HCA_H_AETH	0x0002u
#define HCA_H_ATOMIC	0x0004u
#define HCA_H_ATOMICACK 0x0008u
#define HCA_H_IMM	0x0010u
#define HCA_H_IETH	0x0020u
#define HCA_H_FETH	0x0040u
#define HCA_H_DETH	0x0080u	/* by service */
#define HCA_H_XRCETH	0x0100u	/* by service: requests of XRC */
#define HCA_H_VALID	0x0200u
#define HCA_OPF_PAYLOAD 0x0400u		/* may have one */
#define HCA_OPF_FIRST	0x0800u	/* begins a message (first or only) */
#define HCA_OPF_LAST	0x1000u	/* ends a message (last or only) */
#define HCA_OPF_SEND	0x2000u
#define HCA_OPF_WRITE	0x4000u
#define HCA_OPF_RESPONSE 0x8000u

#define HCA_BTH_LEN	12
/* A bundle (bundle.h) has this version, and a code in reserved bits of the octet of AckReq. */
#define HCA_BTH_TVER_BUNDLE	1u
#define HCA_BTH_BUNDLE	0x7fu
#define HCA_MAX_TRANSPORT_LEN	(HCA_BTH_LEN + 4 + 28 + 4)
/* Ethernet, VLAN, IPv6, UDP, transport headers, ICRC */
#define HCA_MAX_OVERHEAD	(14 + 4 + 40 + 8 + HCA_MAX_TRANSPORT_LEN + 4)

#define HCA_PKEY_DEFAULT	0xffffu

/* AETH syndromes (IBTA 9.7.5.1) */
#define HCA_AETH_MASK		0x7fu	/* the high bit is reserved (IBTA 9.3.5.1) */
#define HCA_AETH_TYPE		0x60u
#define HCA_AETH_ACK		0x00u
#define HCA_AETH_RNR		0x20u	/* low 5 bits: timer */
#define HCA_AETH_NAK		0x60u	/* low 5 bits: code */
#define HCA_AETH_VALUE		0x1fu
#define HCA_AETH_NO_CREDITS	0x1fu	/* with ACK: no end-to-end credits */
#define HCA_NAK_SEQ		0x60u
#define HCA_NAK_INVALID		0x61u
#define HCA_NAK_ACCESS		0x62u
#define HCA_NAK_OP		0x63u
#define HCA_NAK_INVALID_RD	0x64u

/* FETH (IBTA A19): placement type and selectivity level, the rest reserved */
#define HCA_FETH_TYPE		0x0000000fu
#define HCA_FETH_LEVEL		0x00000030u

/* Transport headers in host order; only those of the opcode mean something. */
struct hca_pkt {
	uint8_t opcode;			/* wire opcode, with service */
	uint8_t op;			/* enum hca_op */
	uint8_t service;		/* HCA_SVC_* */
	uint32_t what;			/* HCA_H_*, HCA_OPF_* */
	bool solicited, ack_req;
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;

	uint64_t va;			/* RETH, AtomicETH */
	uint32_t rkey;			/* RETH, AtomicETH, IETH */
	uint32_t dma_len;		/* RETH */
	uint64_t swap_add, compare;	/* AtomicETH */
	uint64_t orig;			/* AtomicAckETH */
	uint8_t syndrome;		/* AETH */
	uint32_t msn;
	uint8_t imm[4];			/* as on the wire */
	uint32_t feth;			/* HCA_FETH_* */
	uint32_t qkey, src_qpn;		/* DETH */
	uint32_t xrc_srqn;		/* XRCETH */

	const uint8_t *payload;
	uint32_t payload_len;
	uint8_t pad;			/* received: octets of padding behind it */
	uint8_t bundle;			/* 0: one packet; else see bundle.h */
};

/* Wire opcodes; all zero: reserved or not supported. */
struct hca_pkt_op {
	uint16_t what;			/* HCA_H_*, HCA_OPF_* */
	uint8_t extended;		/* bytes of headers behind the BTH */
};
extern const struct hca_pkt_op hca_pkt_ops[256];

/* HCA_H_* and HCA_OPF_* of a wire opcode; 0: reserved or not supported. */
static inline uint32_t hca_pkt_what(uint8_t opcode)
{
	return hca_pkt_ops[opcode].what;
}

/* Bytes of transport headers, BTH included, of a wire opcode. */
static inline size_t hca_pkt_header_len(uint8_t opcode)
{
	return HCA_BTH_LEN + (size_t)hca_pkt_ops[opcode].extended;
}

/*
 * Take apart @len bytes from BTH to ICRC (>= 16).  false: an opcode not
 * supported, a transport version other than 0 and that of bundles, headers or pad
 * beyond the end, or a payload where none belongs.
 */
bool hca_pkt_parse(const uint8_t *bth, size_t len, struct hca_pkt *pkt);

/*
 * Write the transport headers of @pkt (opcode, ... ; payload_len gives the
 * pad count) to @to.  Returns their length.
 */
size_t hca_pkt_build(const struct hca_pkt *pkt, uint8_t *to);
/*
 * Change a BTH into that of several packets (bundle.h), or of one: opcode, solicited event, AckReq,
 * padding of the last packet, and what each of them carries.
 */
void hca_pkt_change(uint8_t *bth, const struct hca_pkt *to);

/* ns that an RNR NAK with the timer @code (0 to 31) makes a requester wait (IBTA table 45). */
uint64_t hca_rnr_time(uint8_t code);

/* Pad octets that round @len up to four. */
static inline uint32_t hca_pkt_pad(uint32_t len)
{
	return -len & 3;
}

/* ---- the headers below */

#define HCA_MAX_PATH_LEN	(14 + 4 + 40 + 8)	/* with a VLAN, IPv6 and UDP */

struct hca_path {			/* where a packet goes */
	uint8_t dmac[6], smac[6];
	uint8_t sgid[16], dgid[16];	/* IPv4 as ::ffff:a.b.c.d */
	uint16_t vlan;			/* 0xffff: untagged */
	uint8_t sl;			/* VLAN priority */
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	uint16_t sport;
};

/*
 * Write Ethernet, IP and UDP for @len bytes of UDP payload (BTH to ICRC).
 * Returns their length; *@ip_off is where the IP header begins.
 */
size_t hca_path_build(const struct hca_path *path, uint8_t *to, size_t len,
		      size_t *ip_off);

/*
 * Change headers of hca_path_build(), @headers_len bytes with the IP header at @ip_off,
 * to those for @len bytes of UDP payload.
 */
void hca_path_set_len(uint8_t *headers, size_t headers_len, size_t ip_off,
		      size_t len);

/* Is @gid an IPv4-mapped address? */
bool hca_gid_is_ipv4(const uint8_t gid[16]);

/* One's complement checksum of an IPv4 header of 20 bytes. */
uint16_t hca_ipv4_checksum(const uint8_t *ip);

#endif /* HCA_CORE_PKT_H */
