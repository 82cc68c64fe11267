// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a function that may make no DMA cannot write when the machine stops.
 */
#include "transport/withheld.h"

#include <stddef.h>
#include <stdlib.h>

#include "hca.h"
#include "transport/qp_image.h"

HCA_IMAGE_COVERS(struct hca_withheld, 32);

#define NUM_CACHES	3u		/* of contexts */

static struct hca_ctxcache *cache_of(struct hca *hca, unsigned int i)
{
	return i == 0 ? &hca->cache.qd : i == 1 ? &hca->cache.cq :
						  &hca->cache.srq;
}

/* Lines that the caches of contexts have. */
static uint32_t num_lines(const struct hca *hca)
{
	static const enum qhca_cache_id id[NUM_CACHES] = {
		QHCA_CACHE_QD, QHCA_CACHE_CQ, QHCA_CACHE_SRQ,
	};
	uint32_t n = 0;

	for (unsigned int i = 0; i < NUM_CACHES; i++) {
		struct qhca_geometry g = hca_caches_geometry(hca, id[i]);

		n += (uint32_t)g.sets * g.blocks;
	}
	return n;
}

static bool room(struct hca_fn *fn, uint32_t ctxs, uint32_t qps)
{
	struct hca_withheld *w = &fn->withheld;

	w->ctx = calloc(ctxs ? ctxs : 1, sizeof(*w->ctx));
	w->qp = calloc(qps ? qps : 1, sizeof(*w->qp));
	return w->ctx && w->qp;
}

void hca_withheld_forget(struct hca_fn *fn)
{
	free(fn->withheld.ctx);
	free(fn->withheld.qp);
	fn->withheld = (struct hca_withheld){ 0 };
}

/* ---- saving */

struct collect {
	struct hca_fn *fn;
	struct hca_ctxcache *cc;
};

static bool collect_line(void *arg, uint32_t set, uint32_t block,
			 const struct hca_cache_tagline *line,
			 const void *payload)
{
	const struct collect *c = arg;
	struct hca_withheld *w = &c->fn->withheld;
	struct hca_withheld_ctx *ctx;

	(void)set;
	(void)block;
	if (!line->dirty || line->tag.gvmi != c->fn->cfg.gvmi)
		return true;
	ctx = &w->ctx[w->num_ctxs++];
	ctx->table = (uint8_t)c->cc->table;
	ctx->index = line->tag.index;
	c->cc->ops->encode(payload, ctx->bytes);
	return true;
}

static void collect_qps(struct hca_fn *fn)
{
	struct hca_withheld *w = &fn->withheld;

	for (uint32_t qpn = 0; qpn < fn->qps.num_slots; qpn++) {
		const struct hca_qpslot *slot = &fn->qps.slot[qpn];
		uint32_t work = slot->live ? hca_qp_kept_work(fn, qpn) : 0;

		if (work)
			w->qp[w->num_qps++] = (struct hca_withheld_qp){
				.qpn = qpn, .work = work, .db_pi = slot->db_pi,
				.deadline = slot->deadline,
			};
	}
}

/* false: no memory */
static bool hold_back(struct hca_fn *fn)
{
	struct collect c = { .fn = fn };

	hca_withheld_forget(fn);
	fn->withheld.on = true;
	if (!room(fn, num_lines(fn->hca), fn->qps.num_slots))
		return false;
	for (unsigned int i = 0; i < NUM_CACHES; i++) {
		c.cc = cache_of(fn->hca, i);
		if (c.cc->hca)
			hca_cache_for_each(&c.cc->cache, 0, collect_line, &c);
	}
	collect_qps(fn);
	return true;
}

/* ---- the image */

static void context(struct hca_image *im, struct hca_fn *fn,
		    struct hca_withheld_ctx *ctx)
{
	uint64_t addr;
	bool known;

	hca_image_u8(im, "table", &ctx->table);
	hca_image_u32(im, "index", &ctx->index);
	known = ctx->table == QHCA_TABLE_QP || ctx->table == QHCA_TABLE_CQ ||
		ctx->table == QHCA_TABLE_SRQ;
	hca_image_check(im, "table", known);
	hca_image_check(im, "index", known &&
			hca_table_entry(fn, (enum qhca_table)ctx->table,
					ctx->index, &addr));
	if (!hca_image_failed(im))
		hca_image_bytes(im, "context", ctx->bytes, (size_t)1 <<
				fn->tables.map[ctx->table].log_entry);
}

static void qp(struct hca_image *im, const struct hca_fn *fn,
	       struct hca_withheld_qp *q)
{
	hca_image_u32(im, "qpn", &q->qpn);
	hca_image_check(im, "qpn", q->qpn < fn->qps.num_slots &&
			fn->qps.slot[q->qpn].live);
	hca_image_u32(im, "work", &q->work);
	hca_image_u32(im, "db_pi", &q->db_pi);
	hca_image_u64(im, "deadline", &q->deadline);
}

void hca_withheld_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_withheld *w = &fn->withheld;
	uint32_t ctxs, qps;

	if (!im->loading && !fn->restore && !hold_back(fn))
		hca_image_refuse(im, "out of memory");
	ctxs = w->num_ctxs;
	qps = w->num_qps;
	hca_image_count(im, "number of contexts", &ctxs, num_lines(fn->hca));
	hca_image_count(im, "number of QPs", &qps, fn->qps.num_slots);
	if (im->loading && !hca_image_failed(im) && !room(fn, ctxs, qps))
		hca_image_refuse(im, "out of memory");
	if (hca_image_failed(im))
		return;
	w->num_ctxs = ctxs;
	w->num_qps = qps;
	for (uint32_t i = 0; i < ctxs; i++)
		context(im, fn, &w->ctx[i]);
	for (uint32_t i = 0; i < qps; i++)
		qp(im, fn, &w->qp[i]);
}

/* ---- writing */

static bool write_at(struct hca_fn *fn, enum qhca_table table, uint32_t index,
		     size_t offset, const void *bytes, size_t len)
{
	uint64_t addr;

	if (hca_is_dead(fn))
		return false;
	if (hca_table_entry(fn, table, index, &addr) &&
	    !hca_dma_write(fn, addr + offset, bytes, len))
		return true;
	hca_fatal(fn, QHCA_FATAL_TABLE_DMA, (uint32_t)table << 24 | index);
	return false;
}

#define HW_FIELD(name) \
	(offsetof(struct qhca_qpc, hw) + offsetof(struct hca_qpc_hw, name))

_Static_assert(offsetof(struct hca_qpc_hw, kept_db_pi) ==
	       offsetof(struct hca_qpc_hw, kept_work) + 4, "written together");

static void write_qp(struct hca_fn *fn, const struct hca_withheld_qp *q)
{
	uint8_t work[8], deadline[8];

	put_le32(work, q->work);
	put_le32(work + 4, q->db_pi);
	put_le64(deadline, q->deadline);
	write_at(fn, QHCA_TABLE_QP, q->qpn, HW_FIELD(kept_work), work,
		 sizeof(work));
	write_at(fn, QHCA_TABLE_QP, q->qpn, HW_FIELD(kept_deadline), deadline,
		 sizeof(deadline));
}

void hca_withheld_write(struct hca_fn *fn)
{
	const struct hca_withheld *w = &fn->withheld;

	for (uint32_t i = 0; i < w->num_ctxs; i++) {
		const struct hca_withheld_ctx *c = &w->ctx[i];

		write_at(fn, (enum qhca_table)c->table, c->index, 0, c->bytes,
			 (size_t)1 << fn->tables.map[c->table].log_entry);
	}
	for (uint32_t i = 0; i < w->num_qps; i++)
		write_qp(fn, &w->qp[i]);
	hca_withheld_forget(fn);
}
