/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operating system of a host, which has less memory than its programs. */
#include "load.h"

/* the host takes no more pages away then */
#define TAKE_LIMIT	30000000000ull

static void take_pages(struct load *l, struct memory *m)
{
	struct md_frames *f = m->frames;
	struct md_odp *odp = f->odp[world_pick(l->w, f->num_odp)];
	uint32_t page = world_pick(l->w, md_odp_pages(odp)), num;

	switch (world_pick(l->w, 4)) {
	case 0:		/* protected for a while, as for copy on write */
		num = 1 + world_pick(l->w, md_odp_pages(odp) - page);
		md_odp_unmap(odp, page, num);
		break;
	case 1:
		md_odp_move(odp, page);
		break;
	default:
		for (num = 1 + world_pick(l->w, 8);
		     num-- && page < md_odp_pages(odp); page++)
			md_odp_take(odp, page);
		break;
	}
}

/* Takes events in their order; a reported fault waits until it is served. */
static bool take_faults(struct load *l, unsigned int node)
{
	struct memory *m = &l->memory[node];

	while (m->num_faults < MAX_FAULTS) {
		struct fault *f = &m->fault[m->num_faults];

		if (!md_fault(l->node[node], &f->qpn, &f->info))
			break;
		if (!f->info.token || !get_le64(&f->info.length) ||
		    get_le32(&f->info.flags) & QHCA_FAULT_STAGE2)
			return FAIL(l, "node %u qp %u: a fault of stage 2, or without token or length",
				    node + 1, f->qpn);
		for (uint32_t i = 0; i < m->num_faults; i++)
			if (m->fault[i].info.token == f->info.token)
				return FAIL(l, "node %u qp %u: fault %#x is reported twice",
					    node + 1, f->qpn,
					    get_le32(&f->info.token));
		f->due = l->w->now + world_pick(l->w, l->plan->fault_ns);
		m->num_faults++;
	}
	return true;
}

static struct md_odp *find_odp(struct md_frames *f, uint32_t key)
{
	for (uint32_t i = 0; i < f->num_odp; i++)
		if (f->odp[i]->mr.key == key)
			return f->odp[i];
	return NULL;
}

/* A fault of a gather may yield to that of an older request, and is then unknown. */
static bool gave_way(struct load *l, unsigned int node, const struct fault *f)
{
	const struct host *h = &l->node[node]->host;
	uint32_t cause = get_le32(&f->info.flags) & QHCA_FAULT_CAUSE;

	return cause == QHCA_FAULT_GATHER << 4 &&
	       ++l->memory[node].given_way <=
	       qhca_counter(h->hca, h->gvmi, QHCA_CNT_faults_forgotten);
}

static bool serve_fault(struct load *l, unsigned int node,
			const struct fault *f)
{
	struct world *w = l->w;
	struct md_odp *odp = find_odp(l->memory[node].frames,
				      get_le32(&f->info.key));
	uint64_t addr = get_le64(&f->info.addr), len = get_le64(&f->info.length);
	bool write = get_le32(&f->info.flags) & QHCA_FAULT_WRITE;
	uint32_t page, last;

	if (!odp || addr < odp->mr.iova ||
	    addr - odp->mr.iova > odp->mr.len - len)
		return FAIL(l, "node %u qp %u: fault of key %#x at %#" PRIx64
			    ", %" PRIu64 " bytes: no such region", node + 1,
			    f->qpn, get_le32(&f->info.key), addr, len);
	page = md_odp_page(odp, addr);
	/*
	 * Sometimes the following pages come too, and sometimes none: then the access faults
	 * again.
	 */
	last = world_chance(w, 500000) ? md_odp_page(odp, addr + len - 1) :
					 page;
	if (world_chance(w, 950000))
		for (; page <= last; page++)
			md_odp_map(odp, page,
				   write || world_chance(w, 300000));
	if (md_resume(l->node[node], get_le32(&f->info.token), true) &&
	    !gave_way(l, node, f))
		return FAIL(l, "node %u qp %u: FAULT_RESUME refused", node + 1,
			    f->qpn);
	return true;
}

bool load_page_work(struct load *l, unsigned int node)
{
	struct memory *m = &l->memory[node];

	if (!m->frames || !m->frames->num_odp)
		return true;
	/* A page that goes before each retry could delay a message for ever. */
	if (l->w->now < TAKE_LIMIT && world_chance(l->w, l->plan->take))
		take_pages(l, m);
	if (world_chance(l->w, 300000) && !take_faults(l, node))
		return false;
	for (uint32_t i = 0; i < m->num_faults; i++) {
		struct fault f = m->fault[i];

		if (f.due > l->w->now)
			continue;
		m->fault[i--] = m->fault[--m->num_faults];
		if (!serve_fault(l, node, &f))
			return false;
	}
	if (m->frames->corrupt)
		return FAIL(l, "node %u: a page was written after it was given up",
			    node + 1);
	return true;
}

bool load_check_frames(struct load *l)
{
	for (unsigned int h = 0; h < l->num_nodes; h++) {
		struct md_frames *f = l->memory[h].frames;

		if (f && md_frames_check(l->node[h], f))
			return FAIL(l, "node %u: %u free pages were written",
				    h + 1, f->corrupt);
	}
	return true;
}
