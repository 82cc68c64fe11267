/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2 packets.
 *
 * libdeflate computes the CRC, since it uses the instructions that processors
 * have for it.
 */
#include "wire/icrc.h"

#include <string.h>

#include <libdeflate.h>

#include "compiler.h"
#include "wire/pkt.h"

#define UDP_LEN		8
#define BTH_LEN		12
#define IP_MAX		60
#define LRH_LEN		8	/* a dummy local route header of all ones */

/*
 * Octets that routers may change count as all ones (A17.3.3).  The code masks a
 * copy of the headers, and reads the payload where it lies.
 */
uint32_t hca_icrc_of(const uint8_t *ip, size_t ip_len, const uint8_t *rest,
		     size_t len)
{
	HCA_UNINITIALIZED uint8_t head[LRH_LEN + IP_MAX + UDP_LEN + BTH_LEN];
	uint8_t *h = head + LRH_LEN;
	size_t head_len = LRH_LEN + ip_len + UDP_LEN + BTH_LEN;
	uint32_t crc;

	memset(head, 0xff, LRH_LEN);
	memcpy(h, ip, ip_len + UDP_LEN + BTH_LEN);
	if (ip[0] >> 4 == 4) {
		h[1] = 0xff;			/* type of service */
		h[8] = 0xff;			/* time to live */
		h[10] = h[11] = 0xff;		/* header checksum */
	} else {
		h[0] |= 0x0f;			/* traffic class, */
		h[1] = h[2] = h[3] = 0xff;	/* flow label */
		h[7] = 0xff;			/* hop limit */
	}
	h[ip_len + 6] = h[ip_len + 7] = 0xff;	/* UDP checksum */
	h[ip_len + UDP_LEN + 4] = 0xff;		/* BTH resv8a */

	crc = libdeflate_crc32(0, head, head_len);
	return libdeflate_crc32(crc, rest, len - BTH_LEN);
}

uint32_t hca_icrc_rxe_flush(const uint8_t *ip, size_t ip_len, size_t len)
{
	return libdeflate_crc32(hca_icrc(ip, ip_len, len),
				ip + ip_len + UDP_LEN, len);
}

uint32_t hca_icrc_to_send(bool rxe_flush, const uint8_t *ip, size_t ip_len,
			  size_t len)
{
	uint8_t opcode = ip[ip_len + UDP_LEN];

	return rxe_flush && opcode == (HCA_SVC_RC | HCA_OP_FLUSH) ?
		       hca_icrc_rxe_flush(ip, ip_len, len) :
		       hca_icrc(ip, ip_len, len);
}
