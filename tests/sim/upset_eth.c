/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "upset.h"

#define TXD		((uint32_t)sizeof(struct qhca_eth_txd))
#define RXD		((uint32_t)sizeof(struct qhca_eth_rxd))
#define RXC		((uint32_t)sizeof(struct qhca_eth_rxc))
#define LOG_SLOTS	4
#define HEAD		30u		/* Ethernet header, seed, length, room */
#define TYPE		0x88b5		/* for experiments */
#define IP		14u		/* of frames that are sent in segments */
#define TCP		34u
#define TCP_END		54u

static uint32_t word(const struct node *n, const struct md_buf *b, uint32_t off)
{
	return get_le32(md_ptr(n->md, b->page[0] + off));
}

static void set_word(const struct node *n, const struct md_buf *b, uint32_t off,
		     uint32_t value)
{
	put_le32(md_ptr(n->md, b->page[0] + off), value);
}

static uint64_t data_at(const struct node *n, bool rx, uint32_t slot)
{
	uint32_t off = ((rx ? ETH_SLOTS : 0) + slot % ETH_SLOTS) * ETH_LEN;

	return n->eth.data.page[off / MD_PAGE] + off % MD_PAGE;
}

static void post_rx(struct node *n)
{
	struct eth *e = &n->eth;
	struct qhca_eth_rxd *d;

	d = md_ptr(n->md, e->rx.page[0] + e->rx_pi % ETH_SLOTS * RXD);
	put_le64(&d->addr, data_at(n, true, e->rx_pi));
	put_le32(&d->len, ETH_LEN);
	set_word(n, &e->rec, 0, ++e->rx_pi);
}

void eth_open(struct upset *u, unsigned int host)
{
	struct qhca_port_config port = { 0 };
	struct qhca_ethq_config in = { .log_tx = LOG_SLOTS,
				       .log_rx = LOG_SLOTS };
	struct node *n = &u->node[host];
	struct eth *e = &n->eth;

	memset(e, 0, sizeof(*e));
	/* Each buffer is in a page of its own, so that the order of pages does not matter. */
	md_buf_alloc(n->md, &e->tx, MD_PAGE);
	md_buf_alloc(n->md, &e->rx, MD_PAGE);
	md_buf_alloc(n->md, &e->rxc, MD_PAGE);
	md_buf_alloc(n->md, &e->rec, MD_PAGE);
	md_buf_alloc(n->md, &e->data, 2 * ETH_SLOTS * ETH_LEN);
	put_le64(&in.tx_base, e->tx.page[0]);
	put_le64(&in.rx_base, e->rx.page[0]);
	put_le64(&in.rxc_base, e->rxc.page[0]);
	put_le64(&in.rec_base, e->rec.page[0]);
	if (md_cmd(n->md, QHCA_CMD_CREATE_ETHQ, 0, 0, &in, sizeof(in), NULL, 0,
		   NULL))
		host_die("CREATE_ETHQ refused");
	put_le32(&port.fields, QHCA_PORT_SET_RX);
	put_le32(&port.rx_flags, QHCA_RX_ENABLE);
	if (md_cmd(n->md, QHCA_CMD_SET_PORT, 0, 0, &port, sizeof(port), NULL, 0,
		   NULL))
		host_die("SET_PORT refused");
	for (uint32_t i = 0; i < ETH_SLOTS; i++)
		post_rx(n);
	e->live = true;
}

void eth_close(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];
	struct eth *e = &n->eth;

	if (md_cmd(n->md, QHCA_CMD_DESTROY_ETHQ, 0, 0, NULL, 0, NULL, 0, NULL))
		host_die("DESTROY_ETHQ refused");
	e->live = false;
	give_back(n, &e->tx);
	give_back(n, &e->rx);
	give_back(n, &e->rxc);
	give_back(n, &e->rec);
	give_back(n, &e->data);
}

uint32_t eth_outstanding(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];

	return n->eth.live ? n->eth.tx_pi - word(n, &n->eth.rec, 64) : 0;
}

/*
 * A frame of TCP over IPv4 that is to be sent in segments.  The acknowledgement number
 * says what the payload is, and the sequence number where a segment begins in it.
 */
static void make_segmented(struct upset *u, uint8_t *frame, uint32_t len,
			   struct qhca_eth_txd *d)
{
	uint32_t serial = (uint32_t)++u->serial, sum;

	memset(frame + 12, 0, TCP_END - 12);
	put_be16(frame + 12, 0x0800);
	frame[IP] = 0x45;
	frame[IP + 8] = 64;
	frame[IP + 9] = 6;
	put_be32(frame + IP + 12, 0x0a000001);
	put_be32(frame + IP + 16, 0x0a000002);
	put_be32(frame + TCP + 8, serial);
	frame[TCP + 12] = 0x50;
	sum = 0x0a00 + 1 + 0x0a00 + 2 + 6 + len - TCP;
	put_be16(frame + TCP + 16, (uint16_t)sum);
	upset_fill(serial, frame + TCP_END, len - TCP_END);
	put_le16(&d->flags, QHCA_TXD_EOP | QHCA_TXD_TSO | QHCA_TXD_CSUM);
	put_le16(&d->csum_start, TCP);
	put_le16(&d->csum_offset, 16);
	put_le16(&d->mss, (uint16_t)(40 + world_pick(&u->w, 100)));
	put_le16(&d->hdr_len, TCP_END);
}

static void make_plain(struct upset *u, uint8_t *frame, uint32_t len,
		       struct qhca_eth_txd *d)
{
	uint64_t seed = ++u->serial;

	memset(frame + 12, 0, HEAD - 12);
	put_be16(frame + 12, TYPE);
	put_le64(frame + 14, seed);
	put_le32(frame + 22, len);
	upset_fill(seed, frame + HEAD, len - HEAD);
	put_le16(&d->flags, QHCA_TXD_EOP);
}

/* Fill the ring. */
void eth_post(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];
	struct eth *e = &n->eth;
	struct qhca_eth_txd *d;

	while (e->live && eth_outstanding(u, host) < ETH_SLOTS) {
		uint32_t len = TCP_END + 1 +
			       world_pick(&u->w, ETH_LEN - TCP_END);
		uint64_t at = data_at(n, false, e->tx_pi);
		uint8_t *frame = md_ptr(n->md, at);

		memcpy(frame, u->node[!host].md->mac, 6);
		memcpy(frame + 6, n->md->mac, 6);
		d = md_ptr(n->md, e->tx.page[0] + e->tx_pi % ETH_SLOTS * TXD);
		memset(d, 0, sizeof(*d));
		if (world_pick(&u->w, 2))
			make_segmented(u, frame, len, d);
		else
			make_plain(u, frame, len, d);
		put_le64(&d->addr, at);
		put_le32(&d->len, len);
		e->tx_pi++;
	}
	if (e->live)
		qhca_doorbell(n->md->host.hca, 0, 0, QHCA_DB_ETH_TX,
			      (uint64_t)e->tx_pi << 32, host_clock(&n->md->host));
}

static bool check_segment(struct upset *u, unsigned int host,
			  const uint8_t *frame, uint32_t len, uint32_t flags)
{
	uint32_t off = get_be32(frame + TCP + 4);
	uint32_t bytes = get_be16(frame + IP + 2) - (TCP_END - IP);
	uint8_t want[ETH_LEN];

	if (!(flags & QHCA_RXC_CSUM_OK))
		return UPSET_FAIL(u, "host %u: checksum of a segment", host);
	if (bytes + TCP_END > len || off > ETH_LEN || bytes > ETH_LEN - off)
		return UPSET_FAIL(u, "host %u: segment of %u bytes from %u in a frame of %u",
				  host, bytes, off, len);
	upset_fill(get_be32(frame + TCP + 8), want, off + bytes);
	if (memcmp(frame + TCP_END, want + off, bytes))
		return UPSET_FAIL(u, "host %u: bytes of a segment are wrong", host);
	return true;
}

static bool check_frame(struct upset *u, unsigned int host, const uint8_t *frame,
			uint32_t len, uint32_t flags)
{
	uint32_t sent = get_le32(frame + 22);
	uint8_t want[ETH_LEN];

	if (get_be16(frame + 12) == 0x0800)
		return check_segment(u, host, frame, len, flags);
	if (sent > ETH_LEN || sent < HEAD || len != (sent < 60 ? 60 : sent))
		return UPSET_FAIL(u, "host %u: frame of %u bytes, not %u", host,
				  len, sent);
	upset_fill(get_le64(frame + 14), want, sent - HEAD);
	if (memcmp(frame + HEAD, want, sent - HEAD))
		return UPSET_FAIL(u, "host %u: bytes of a frame are wrong", host);
	return true;
}

bool eth_poll(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];
	struct eth *e = &n->eth;

	while (e->live) {
		uint32_t slot = e->rx_ci % ETH_SLOTS;
		const struct qhca_eth_rxc *c =
			md_ptr(n->md, e->rxc.page[0] + slot * RXC);
		bool phase = !(e->rx_ci >> LOG_SLOTS & 1);

		if (!!(get_le32(&c->flags) & QHCA_RXC_PHASE) != phase)
			break;
		if (get_le16(&c->index) != slot)
			return UPSET_FAIL(u, "host %u: frame in slot %u, not %u",
					  host, get_le16(&c->index), slot);
		if (!check_frame(u, host, md_ptr(n->md, data_at(n, true, slot)),
				 get_le32(&c->len), get_le32(&c->flags)))
			return false;
		e->rx_ci++;
		e->received++;
		post_rx(n);
	}
	return true;
}
