// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames of TCP that the software of fuzz_tso gives, whose headers, fragments and numbers
 * may be hostile.
 */
#include <string.h>

#include "tso_script.h"
#include "wire/ether.h"
#include "wire/tso.h"

#define MAX_HDR		(14 + 2 * 4 + 60 + 60)
#define MAX_WAITING	4u		/* frames; each may lead to a question */
#define MAX_SEGMENTS	700u		/* most of a frame, so that inputs take not too long */

struct tcp {				/* before anything is spoilt */
	bool v6;
	uint16_t ip, l4, hdr_len, mss;
	uint32_t payload;
};

/* What keeps segments apart; in most frames there is none of it. */
enum odd { OTHER_PEER, OTHER_SOURCE, TAGGED, LONG_IP, TO_GROUP, TO_ITSELF, NUM_ODD };

static uint8_t *put_ethernet(const struct script *x, uint8_t *f, unsigned int odd,
			     bool v6)
{
	uint8_t *p = f + 12;

	memcpy(f, odd == TO_ITSELF ? x->mac : x->to->md->mac, 6);
	memcpy(f + 6, x->mac, 6);
	f[odd == OTHER_SOURCE ? 10 : 4] ^= odd == OTHER_PEER || odd == OTHER_SOURCE;
	f[0] |= odd == TO_GROUP;
	if (odd == TAGGED) {
		put_be16(p, HCA_ETHERTYPE_VLAN);
		put_be16(p + 2, 7);
		p += 4;
	}
	put_be16(p, v6 ? HCA_ETHERTYPE_IPV6 : HCA_ETHERTYPE_IPV4);
	return p + 2;
}

/* Lengths and checksum are the device's business. */
static uint8_t *put_ip(struct script *x, uint8_t *ip, bool v6, bool is_long)
{
	if (v6) {
		ip[0] = 0x60;
		ip[6] = is_long ? 60 : 6;
		ip[7] = 64;
		in_fill(x->in, ip + 20, 4);
		ip[40] = 6;		/* of the extension header, if there is one */
		return ip + (is_long ? 48 : 40);
	}
	ip[0] = is_long ? 0x46 : 0x45;
	ip[8] = 64;
	ip[9] = 6;
	in_fill(x->in, ip + 4, 2);
	in_fill(x->in, ip + 12, 2);
	return ip + (is_long ? 24 : 20);
}

static struct tcp put_headers(struct script *x, uint8_t *f)
{
	static const uint16_t sizes[] = { 1448, 100, 8, 512, 1000, 4000, MTU - 80 };
	uint8_t how = in_u8(x->in), odd = in_u8(x->in);
	unsigned int words = how >> 4 > 5 ? 3 : (how >> 4) * 2u;
	struct tcp t = { .v6 = how & 1 };
	uint8_t *p;

	memset(f, 0, MAX_HDR);
	odd = odd < 192 ? NUM_ODD : odd % NUM_ODD;
	p = put_ethernet(x, f, odd, t.v6);
	t.ip = (uint16_t)(p - f);
	p = put_ip(x, p, t.v6, odd == LONG_IP);
	t.l4 = (uint16_t)(p - f);
	t.hdr_len = (uint16_t)(t.l4 + 20 + 4 * words);
	put_be32(p + 4, how & 2 ? (uint32_t)in_number(x->in) : 0xfffff000);
	p[12] = (uint8_t)((5 + words) << 4);
	p[13] = in_u8(x->in);
	memset(p + 20, 1, 4 * words);
	how = in_u8(x->in);
	t.mss = how < 192 ? sizes[how % (sizeof(sizes) / sizeof(*sizes))] :
			    (uint16_t)in_number(x->in);
	t.payload = 1 + (uint32_t)in_word(x->in, 2);
	if (t.mss && t.payload / t.mss > MAX_SEGMENTS)
		t.payload = t.mss * MAX_SEGMENTS;
	return t;
}

/* Some octets of the headers, but not the addresses, are anything. */
static void spoil_headers(struct script *x, uint8_t *f, const struct tcp *t)
{
	uint8_t how = in_u8(x->in);

	for (unsigned int n = how < 176 ? 0 : how % 4; n > 0; n--)
		f[12 + in_below(x->in, t->hdr_len - 12u)] = in_u8(x->in);
}

static struct qhca_eth_txd *txd_of(const struct script *x, uint32_t i)
{
	return md_ptr(large(x)->md,
		      x->ring + sizeof(struct qhca_eth_txd) * (i % (1u << LOG_TX)));
}

/* Divide the frame among @num descriptors, anywhere. */
static void put_fragments(struct script *x, uint64_t addr, uint32_t len,
			  unsigned int num)
{
	for (unsigned int i = 0; i < num; i++) {
		struct qhca_eth_txd *d = txd_of(x, x->pi + i);
		uint8_t how = i + 1 < num ? in_u8(x->in) : 0;
		uint32_t part = how < 128 ? how : len / num + how;

		if (i + 1 == num || part > len)
			part = len;
		memset(d, 0, sizeof(*d));
		put_le64(&d->addr, addr);
		put_le32(&d->len, part);
		put_le16(&d->flags, i + 1 == num ? QHCA_TXD_EOP : 0);
		addr += part;
		len -= part;
	}
}

static void put_numbers(struct script *x, const struct tcp *t)
{
	static const uint16_t tags[] = { 7, 0x4007, 0x4000, 8 };
	struct qhca_eth_txd *d = txd_of(x, x->pi);
	uint8_t how = in_u8(x->in);
	uint16_t tag = how & 1 ? QHCA_TXD_VLAN : 0;

	put_le16(&d->flags, get_le16(&d->flags) | QHCA_TXD_TSO | QHCA_TXD_CSUM |
			    tag);
	put_le16(&d->vlan, tags[how >> 1 & 3]);
	put_le16(&d->csum_start, t->l4);
	put_le16(&d->csum_offset, HCA_TSO_CSUM);
	put_le16(&d->mss, t->mss);
	put_le16(&d->hdr_len, t->hdr_len);
}

/* Some bytes of the descriptors are anything. */
static void spoil_descriptors(struct script *x, unsigned int num)
{
	uint8_t how = in_u8(x->in);

	for (unsigned int n = how < 192 ? 0 : 1 + how % 2; n > 0; n--) {
		uint8_t *d = (uint8_t *)txd_of(x, x->pi + in_below(x->in, num));
		uint32_t at = 2 * in_below(x->in, 12);

		put_le16(d + at, (uint16_t)in_number(x->in));
	}
}

/* The sum of the pseudo-header with the length that the descriptors give. */
static void put_sum(struct script *x, uint8_t *f, const struct tcp *t,
		    unsigned int num)
{
	const uint8_t *addr = f + t->ip + (t->v6 ? 8 : 12);
	uint32_t len = 0, sum;

	for (unsigned int i = 0; i < num; i++)
		len += get_le32(&txd_of(x, x->pi + i)->len);
	len -= t->l4;
	sum = 6 + (len >> 16) + (len & 0xffff);
	for (unsigned int i = 0; i < (t->v6 ? 32 : 8); i += 2)
		sum += get_be16(addr + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(f + t->l4 + HCA_TSO_CSUM, (uint16_t)sum);
}

/* The memory of both senders is the same. */
static void copy_memory(struct script *x, uint64_t addr, uint64_t len)
{
	memcpy(md_ptr(x->sender[PLAIN].g->md, addr), md_ptr(large(x)->md, addr),
	       len);
}

/* No frame has the word that the device writes, at times that differ between the senders. */
static void copy_ring(struct script *x)
{
	for (uint32_t i = 0; i < 1u << LOG_TX; i++) {
		struct qhca_eth_txd *d = txd_of(x, i);
		uint64_t addr = get_le64(&d->addr);

		if (addr < x->rec + 128 && addr + get_le32(&d->len) > x->rec)
			put_le64(&d->addr, 0);
	}
	copy_memory(x, x->ring, sizeof(struct qhca_eth_txd) << LOG_TX);
}

void post(struct script *x)
{
	uint64_t at = x->area[x->turn++ % NUM_AREAS];
	unsigned int num = 1 + in_below(x->in, QHCA_MAX_TX_FRAGS + 1);
	uint8_t *f = md_ptr(large(x)->md, at);
	struct tcp t;

	if (x->waiting == MAX_WAITING)
		finish(x);
	if (x->pi + num - queue_of(large(x))->tx_ci > 1u << LOG_TX)
		take_back(x);
	t = put_headers(x, f);
	spoil_headers(x, f, &t);
	put_fragments(x, at, t.hdr_len + t.payload, num);
	put_numbers(x, &t);
	spoil_descriptors(x, num);
	if (!in_chance(x->in, 16))
		put_sum(x, f, &t, num);
	copy_memory(x, at, MAX_HDR);
	copy_ring(x);
	x->pi += num;
	x->waiting++;
	ring_doorbell(x);
}

void scribble(struct script *x)
{
	uint8_t how = in_u8(x->in);
	uint64_t at = x->area[how % NUM_AREAS];

	if (how < 96)
		at = x->ring + in_below(x->in, sizeof(struct qhca_eth_txd) << LOG_TX);
	else if (how < 192)
		at += 12 + in_below(x->in, MAX_HDR - 12);
	else
		at += in_word(x->in, 2);
	*(uint8_t *)md_ptr(large(x)->md, at) = in_u8(x->in);
	copy_memory(x, at, 1);
	copy_ring(x);
}
