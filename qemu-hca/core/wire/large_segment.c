// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Large segments of TCP: how much goes in one, and what of the wire is one.
 */
#include "wire/large_segment.h"

#include "hca.h"
#include "wire/pkt.h"
#include "wire/trailer.h"

#define IPV4_HLEN	20
#define IPV6_HLEN	40
#define PROTO_TCP	6
#define TCP_DATA	12
#define VLAN_ID		0x0fffu

/* ---- out */

/*
 * The path to whoever has the frame's destination address.  It has no GID: what counts is the
 * next device, and that may be a router.
 */
static bool find_path(const struct hca_fn *fn, const struct hca_tso *tso,
		      const uint8_t *hdr, uint16_t tci, struct hca_path *path)
{
	bool tagged = tci != HCA_VLAN_NONE;

	/* The answer comes to the source address. */
	if (tso->l3 != HCA_ETH_HLEN || !hca_mac_is_ours(fn, hdr + 6) ||
	    (tagged && !(tci & VLAN_ID)))
		return false;
	memset(path, 0, sizeof(*path));
	memcpy(path->dmac, hdr, sizeof(path->dmac));
	memcpy(path->smac, hdr + 6, sizeof(path->smac));
	path->vlan = tagged ? tci & VLAN_ID : HCA_VLAN_NONE;
	return true;
}

/* So much fits in a frame that is no longer than a PROBE of that size, tag included. */
static uint32_t payload_room(const struct hca_tso *tso, uint32_t size)
{
	uint32_t room = size + HCA_MAX_OVERHEAD - HCA_VLAN_HLEN -
			HCA_TRAILER - tso->hdr_len;

	return room < size ? room : size;
}

uint32_t hca_large_payload(struct hca_fn *fn, const struct hca_tso *tso,
			   const uint8_t *hdr, uint16_t tci, uint32_t off,
			   unsigned int most)
{
	uint32_t left = tso->len - tso->hdr_len - off, size, num;
	uint32_t one = hca_tso_payload(tso, off);
	struct hca_path path;

	/* With a source route the checksum is that of another address than the header has. */
	if (left <= tso->mss ||
	    tso->l4 - tso->l3 != (tso->v6 ? IPV6_HLEN : IPV4_HLEN) ||
	    !find_path(fn, tso, hdr, tci, &path))
		return one;
	/* Nobody tells the device what TCP has lost. */
	size = hca_peer_bundle(fn, &path, tso->mss, true);
	if (!size)
		return one;
	num = payload_room(tso, size) / tso->mss;
	if (num > HCA_LARGE_SEGMENTS)
		num = HCA_LARGE_SEGMENTS;
	if (num > most)
		num = most;
	if (num < 2)
		return one;
	return num * tso->mss < left ? num * tso->mss : left;
}

/* ---- in */

static bool take_trailer(const uint8_t *frame, size_t len, struct hca_tso *tso)
{
	if (len < HCA_ETH_HLEN + HCA_TRAILER ||
	    !hca_trailer_find(frame, len, &tso->mss))
		return false;
	tso->len = (uint32_t)(len - HCA_TRAILER);
	return true;
}

/* Does the packet of IP end where the trailer begins, and are its checksums right? */
static bool find_tcp(const uint8_t *frame, struct hca_tso *tso)
{
	uint16_t type = hca_tso_ethertype(frame, tso->len, &tso->l3);
	uint32_t room = tso->len - tso->l3;
	const uint8_t *ip = frame + tso->l3;

	if (type == HCA_ETHERTYPE_IPV4) {
		if (!hca_ipv4_csum_ok(ip, room) || get_be16(ip + 2) != room)
			return false;
		tso->l4 = (uint16_t)(tso->l3 + (ip[0] & 15) * 4);
		return ip[9] == PROTO_TCP;
	}
	if (type != HCA_ETHERTYPE_IPV6 || !hca_ipv6_csum_ok(ip, room) ||
	    get_be16(ip + 4) + (uint32_t)IPV6_HLEN != room)
		return false;
	tso->l4 = (uint16_t)(tso->l3 + IPV6_HLEN);
	return ip[6] == PROTO_TCP;
}

/* The sum of the pseudo-header, with the length of all, as software gives it. */
static void put_pseudo_sum(const struct hca_tso *tso, uint8_t *hdr)
{
	const uint8_t *ip = hdr + tso->l3;
	uint32_t sum = PROTO_TCP + tso->len - tso->l4;

	sum = hca_csum_add(sum, ip + (tso->v6 ? 8 : 12), tso->v6 ? 32 : 8);
	put_be16(hdr + tso->l4 + HCA_TSO_CSUM, (uint16_t)~hca_csum_fold(sum));
}

bool hca_large_parse(const uint8_t *frame, size_t len, struct hca_tso *tso,
		     uint8_t *hdr)
{
	if (!take_trailer(frame, len, tso) || !find_tcp(frame, tso))
		return false;
	/* The checksum was right, so that TCP has its fixed header at least. */
	tso->hdr_len = (uint16_t)(tso->l4 +
				  (frame[tso->l4 + TCP_DATA] >> 4) * 4);
	if (!hca_tso_valid(tso, QHCA_MAX_FRAME) ||
	    tso->len - tso->hdr_len <= tso->mss ||
	    tso->len - tso->hdr_len > (uint32_t)HCA_LARGE_SEGMENTS * tso->mss)
		return false;
	memcpy(hdr, frame, tso->hdr_len);
	if (!hca_tso_parse(tso, hdr))
		return false;
	put_pseudo_sum(tso, hdr);
	return true;
}
