/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "cold.h"
#include "wire/pkt.h"

static bool sniff_frame(struct world *w, unsigned int from, uint8_t *frame,
			size_t len)
{
	struct sniff *s = w->filter_arg;
	const uint8_t *bth = frame + 42;
	uint32_t psn = bth[9] << 16 | bth[10] << 8 | bth[11];
	uint8_t op = bth[0] & 31;

	(void)len;
	if (!from && (op < HCA_OP_READ_RESP_FIRST || op > HCA_OP_ATOMIC_ACK)) {
		s->requests++;
		s->request_time = w->now;
		s->request_psn = psn;
	} else if (from && op == HCA_OP_ACK) {
		uint8_t syndrome = bth[12];

		s->acks += !(syndrome >> 5);
		if (syndrome >> 5 == 1) {
			s->rnr++;
			s->rnr_psn = psn;
			s->syndrome = syndrome;
			s->rnr_time = w->now;
		}
	} else if (from) {
		s->responses++;
	}
	return true;
}

void sniff_start(struct pair *p, struct sniff *s)
{
	*s = (struct sniff){ .w = &p->w };
	p->w.filter = sniff_frame;
	p->w.filter_arg = s;
}

struct cold cold_make(struct end *e)
{
	struct cold c = { .frames = md_frames_new(e->md, 12) };

	c.odp = md_odp_reg(e->md, c.frames, PAIR_PD, COLD_IOVA, COLD_LEN,
			   ALL_ACCESS);
	return c;
}

void post_at(struct pair *p, struct end *e, uint8_t opcode, uint64_t addr,
	     uint32_t key, uint32_t len, uint64_t raddr, uint32_t rkey)
{
	struct md_sge sge = { addr, len, key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
		.sge = &sge, .raddr = raddr, .rkey = rkey, .swap_add = 5,
		.ud = is_datagram(p) ? &p->ud : NULL,
	};

	post_wr(e, &wr);
}

void post_to_cold(struct pair *p, const struct cold *c, uint8_t opcode,
		  uint32_t len, uint32_t off)
{
	post_at(p, &p->a, opcode, p->a.mr.iova, p->a.mr.key, len,
		COLD_IOVA + off, c->odp->mr.key);
}

void recv_cold(struct end *e, const struct cold *c, uint32_t len)
{
	struct md_sge sge = { COLD_IOVA, len, c->odp->mr.key };

	if (e->qp.init.srq)
		md_srq_post(e->md, e->qp.init.srq, e->qp.init.srq->pi, &sge, 1);
	else
		md_post_recv(e->md, &e->qp, e->qp.rq_pi, &sge, 1);
}

uint32_t take_fault(int line, struct end *e, const struct cold *c,
		    enum qhca_fault_cause cause, struct want want)
{
	struct qhca_fault_info f = { 0 };
	uint32_t qpn;

	if (!md_fault(e->md, &qpn, &f)) {
		check_failed(line, "no fault");
		return 0;
	}
	if (qpn != e->qp.qpn || get_le32(&f.key) != c->odp->mr.key ||
	    get_le32(&f.flags) != (want.flags | (uint32_t)cause << 4) ||
	    get_le64(&f.addr) != want.addr ||
	    get_le64(&f.length) != want.length ||
	    get_le32(&f.bytes_done) != want.done)
		check_failed(line, "fault: qp %u key %#x flags %#x at %#llx, %llu bytes, %u done",
			     qpn, get_le32(&f.key), get_le32(&f.flags),
			     (unsigned long long)get_le64(&f.addr),
			     (unsigned long long)get_le64(&f.length),
			     get_le32(&f.bytes_done));
	return get_le32(&f.token);
}

void expect_no_fault(int line, struct end *e)
{
	struct qhca_fault_info f;
	uint32_t qpn;

	if (md_fault(e->md, &qpn, &f))
		check_failed(line, "a fault of key %#x at %#llx",
			     get_le32(&f.key),
			     (unsigned long long)get_le64(&f.addr));
}

void cold_map(const struct cold *c)
{
	for (uint32_t i = 0; i < md_odp_pages(c->odp); i++)
		md_odp_map(c->odp, i, true);
}

void cold_resume(struct end *e, const struct cold *c, uint32_t token)
{
	cold_map(c);
	CHECK_EQ(md_resume(e->md, token, true), QHCA_CMD_OK);
}

void fill_bytes(struct end *e, uint32_t len, uint8_t first)
{
	uint8_t data[COLD_LEN];

	for (uint32_t i = 0; i < len; i++)
		data[i] = first + i * 7;
	put_bytes(e, 0, data, len);
}

void check_cold(int line, struct end *e, const struct cold *c, uint32_t off,
		uint32_t len, uint8_t first)
{
	uint8_t data[COLD_LEN];

	md_buf_read(e->md, &c->odp->mr.buf, off + COLD_IOVA % MD_PAGE, data,
		    len);
	for (uint32_t i = 0; i < len; i++)
		if (data[i] != (uint8_t)(first + i * 7)) {
			check_failed(line, "byte %u is %02x", i, data[i]);
			return;
		}
}
