/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A RoCEv2 packet that arrived, as the layers below see it.
 */
#ifndef HCA_CORE_ROCE_H
#define HCA_CORE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_ROCE_UDP_PORT	4791

/*
 * What the Ethernet and IP layers learnt.  Lengths were checked against each
 * other: frame[0 .. len) holds the IP header whole, a UDP header, and
 * bth_len >= 16 bytes from bth_off (BTH to ICRC, by the UDP length), without
 * Ethernet padding.
 */
#define HCA_ROCE_HEADERS	128	/* bytes, at most, in front of the payload */

struct hca_rx_info {
	const uint8_t *frame;		/* Ethernet header first */
	/*
	 * The same frame: payload and ICRC are read here.  It may be memory that the
	 * sender can change meanwhile; @frame has the headers alone then.
	 */
	const uint8_t *body;
	size_t len;			/* bytes up to and including the ICRC */
	uint16_t ip_off;		/* IPv4 or IPv6 header */
	uint16_t udp_off;
	uint16_t bth_off;		/* udp_off + 8 */
	uint16_t bth_len;		/* bytes, BTH to ICRC */
	uint8_t ip_version;		/* 4 or 6 */
	bool multicast;			/* dgid is a multicast address */
	int16_t sgid_index;		/* GID the packet is for; -1: multicast */
	uint16_t vlan;			/* tag control; 0xffff: untagged */
	uint8_t sgid[16];		/* sender, network order */
	uint8_t dgid[16];
};

#endif /* HCA_CORE_ROCE_H */
