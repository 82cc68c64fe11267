/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Invariant CRC of RoCEv2 packets (RoCEv2 annex A17.3.3).
 */
#ifndef HCA_CORE_ICRC_H
#define HCA_CORE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_ICRC_LEN	4
#define HCA_ICRC_HEAD	20	/* UDP and BTH */

/*
 * The ICRC of a packet, as the number whose little-endian octets go on the
 * wire.  @ip is the IP header (@ip_len bytes, 20 to 60), followed without a
 * gap by the UDP header and @len bytes from BTH up to, not including, the
 * ICRC; @len is at least 12.  What follows the BTH is read at @rest.
 */
uint32_t hca_icrc_of(const uint8_t *ip, size_t ip_len, const uint8_t *rest,
		     size_t len);

/* The same, of a packet in one piece. */
static inline uint32_t hca_icrc(const uint8_t *ip, size_t ip_len, size_t len)
{
	return hca_icrc_of(ip, ip_len, ip + ip_len + HCA_ICRC_HEAD, len);
}

/*
 * The same for a FLUSH of Linux's Soft-RoCE, which goes over the @len bytes once
 * more, as if they were payload too (seen in 6.12).
 */
uint32_t hca_icrc_rxe_flush(const uint8_t *ip, size_t ip_len, size_t len);
/* The ICRC with which a packet is sent; @rxe_flush: for a FLUSH, that of Soft-RoCE. */
uint32_t hca_icrc_to_send(bool rxe_flush, const uint8_t *ip, size_t ip_len,
			  size_t len);

#endif /* HCA_CORE_ICRC_H */
