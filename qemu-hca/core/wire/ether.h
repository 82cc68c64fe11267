/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lengths and types of the headers below RoCE, and the Internet checksum.
 */
#ifndef HCA_CORE_ETHER_H
#define HCA_CORE_ETHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_ETH_HLEN		14
#define HCA_VLAN_HLEN		4
#define HCA_UDP_HLEN		8
#define HCA_MIN_FRAME		60	/* bytes without FCS: shorter are padded */
#define HCA_ETHERTYPE_VLAN	0x8100
#define HCA_ETHERTYPE_IPV4	0x0800
#define HCA_ETHERTYPE_IPV6	0x86dd
#define HCA_MIN_ROCE_LEN	16	/* BTH and ICRC */

/* One's complement sum (not inverted) of @len bytes, carried on from @sum. */
uint32_t hca_csum_add(uint32_t sum, const uint8_t *p, size_t len);
uint16_t hca_csum_fold(uint32_t sum);	/* folded and inverted */
/*
 * Is the checksum of UDP or TCP right in the packet at @ip, which is not a fragment?
 * There are @room bytes.  false also if there is no such checksum.
 */
bool hca_ipv4_csum_ok(const uint8_t *ip, size_t room);
bool hca_ipv6_csum_ok(const uint8_t *ip, size_t room);

#endif /* HCA_CORE_ETHER_H */
