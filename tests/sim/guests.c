/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "guests.h"

#include <stdio.h>
#include <string.h>

#include "bytes.h"

#define ATTR(gvmi)	(0x100u + (gvmi))	/* uplink attribute */

#define FAIL(g, ...) \
	(snprintf((g)->error, sizeof((g)->error), __VA_ARGS__), false)

/* ---- events */

static uint32_t gvmi_of(const struct qhca_eqe *eqe)
{
	return get_le32(&eqe->number);
}

static bool is_pin(const struct qhca_eqe *eqe)
{
	return get_le32(&eqe->detail) == QHCA_STAGE2_PIN;
}

static bool event_ok(struct guests *g, const struct qhca_eqe *eqe)
{
	const struct qhca_fault_info *info = &eqe->fault;
	uint32_t gvmi = gvmi_of(eqe), flags = get_le32(&info->flags);

	if (!gvmi || gvmi > MAX_GUESTS || !g->guest[gvmi].md)
		return FAIL(g, "a fault of function %u, which is no guest", gvmi);
	if (!(flags & QHCA_FAULT_STAGE2) ||
	    QHCA_GET(QHCA_FAULT_GVMI, flags) != gvmi || info->key ||
	    info->bytes_done || !info->token || !info->length)
		return FAIL(g, "function %u: a fault with flags %#x, key %#x, token %#x",
			    gvmi, flags, get_le32(&info->key),
			    get_le32(&info->token));
	for (uint32_t i = 0; i < g->num_asks; i++)
		if (gvmi_of(&g->ask[i].eqe) == gvmi &&
		    g->ask[i].eqe.fault.token == info->token)
			return FAIL(g, "function %u: fault %#x is reported twice",
				    gvmi, get_le32(&info->token));
	return true;
}

static bool take_event(struct guests *g, const struct qhca_eqe *eqe)
{
	struct guest_ask *ask = &g->ask[g->num_asks];

	if (eqe->type == QHCA_EVENT_PAGE_FAULT)
		return FAIL(g, "the host domain receives a fault of stage 1");
	if (eqe->type != QHCA_EVENT_STAGE2_FAULT)
		return true;
	if (!event_ok(g, eqe))
		return false;
	ask->eqe = *eqe;
	ask->due = g->w->now;
	if (is_pin(eqe)) {
		g->guest[gvmi_of(eqe)].pins++;
	} else {
		g->guest[gvmi_of(eqe)].faults++;
		if (g->fault_ns)
			ask->due += world_pick(g->w, g->fault_ns);
	}
	g->num_asks++;
	return true;
}

static bool take_events(struct guests *g)
{
	struct qhca_eqe eqe;

	while (g->num_asks < MAX_ASKS && md_event(g->pf, &eqe)) {
		g->events++;
		if (!take_event(g, &eqe))
			return false;
	}
	return true;
}

/* ---- pages */

static void map(struct guests *g, struct guest *guest, uint64_t addr,
		uint64_t bits)
{
	struct host *pf = &g->pf->host, *vf = &guest->md->host;
	uint64_t was = host_s2_entry(pf, vf, addr);

	if (was & QHCA_ATE_PRESENT)
		host_s2_bits(pf, vf, addr, (was | bits) & (QHCA_ATE_WRITE |
							   QHCA_ATE_PINNED));
	else
		host_s2_map(pf, vf, addr, bits);
}

/* Some pages of a fault, or none, are brought: it faults again. */
static void bring(struct guests *g, const struct qhca_eqe *eqe)
{
	struct guest *guest = &g->guest[gvmi_of(eqe)];
	uint64_t addr = get_le64(&eqe->fault.addr);
	uint64_t end = addr + get_le64(&eqe->fault.length);
	bool write = get_le32(&eqe->fault.flags) & QHCA_FAULT_WRITE;
	bool pin = is_pin(eqe), careless = g->careless && !pin;
	uint64_t bits = (write ? QHCA_ATE_WRITE : 0) |
			(pin ? QHCA_ATE_PINNED : 0);

	if (careless && world_chance(g->w, 50000))
		return;
	if (careless && world_chance(g->w, 500000))
		end = addr + 1;
	if (careless && world_chance(g->w, 300000))
		bits |= QHCA_ATE_WRITE;
	for (addr &= ~(HOST_PAGE - 1ull); addr < end; addr += HOST_PAGE)
		map(g, guest, addr, bits);
}

static void serve(struct guests *g, const struct qhca_eqe *eqe)
{
	uint16_t gvmi = (uint16_t)gvmi_of(eqe);

	bring(g, eqe);
	g->served++;
	if (md_cmd(g->pf, QHCA_CMD_STAGE2_RESUME, get_le32(&eqe->fault.token),
		   QHCA_RESUME_OK | (uint32_t)gvmi << 16, NULL, 0, NULL, 0,
		   NULL))
		g->guest[gvmi].refused++;
}

bool guests_work(struct guests *g)
{
	if (g->error[0] || !take_events(g))
		return false;
	for (uint32_t i = 0; i < g->num_asks; i++) {
		struct qhca_eqe eqe = g->ask[i].eqe;

		if (g->ask[i].due > g->w->now || (g->absent && !is_pin(&eqe)))
			continue;
		g->ask[i--] = g->ask[--g->num_asks];
		serve(g, &eqe);
	}
	return true;
}

bool guest_waits(const struct guests *g, uint16_t gvmi)
{
	for (uint32_t i = 0; i < g->num_asks; i++)
		if (gvmi_of(&g->ask[i].eqe) == gvmi)
			return true;
	return false;
}

bool guest_take(struct guests *g, uint16_t gvmi, uint64_t addr)
{
	struct guest *guest = &g->guest[gvmi];
	struct host *vf = &guest->md->host;
	uint64_t entry = host_s2_entry(&g->pf->host, vf, addr);

	if (!(entry & QHCA_ATE_PRESENT) || entry & QHCA_ATE_PINNED)
		return false;
	host_s2_unmap(&g->pf->host, vf, addr);
	guest->taken++;
	return true;
}

void guest_protect(struct guests *g, uint16_t gvmi, uint64_t addr)
{
	struct host *vf = &g->guest[gvmi].md->host;
	uint64_t entry = host_s2_entry(&g->pf->host, vf, addr);

	if (!(entry & QHCA_ATE_PRESENT) || entry & QHCA_ATE_PINNED)
		return;
	host_s2_bits(&g->pf->host, vf, addr, 0);
	host_s2_invalidate(&g->pf->host, vf, addr, 1);
}

void guest_take_all(struct guests *g, uint16_t gvmi)
{
	host_s2_unmap_all(&g->pf->host, &g->guest[gvmi].md->host);
}

/* ---- life */

/* What was asked for in an earlier life need not be answered. */
static void forget(struct guests *g, uint16_t gvmi)
{
	take_events(g);
	for (uint32_t i = 0; i < g->num_asks; i++)
		if (gvmi_of(&g->ask[i].eqe) == gvmi)
			g->ask[i--] = g->ask[--g->num_asks];
}

void guest_reset(struct guests *g, uint16_t gvmi)
{
	struct host *vf = &g->guest[gvmi].md->host;

	qhca_reg_write(vf->hca, gvmi, QHCA_REG_CONTROL, QHCA_CONTROL_RESET,
		       host_clock(vf));
	forget(g, gvmi);
}

/*
 * The function waits for a command of its own: it is served at once.  The clock stands
 * still, so that only the doorbell tells the device that its EQ has room again.
 */
static bool on_idle(struct host *h)
{
	struct guests *g = h->idle_arg;
	uint64_t before = g->events + g->served;

	guests_work(g);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM,
		      (uint64_t)g->pf->eq_ci << 32, host_clock(h));
	return g->events + g->served != before;
}

void guests_init(struct guests *g, struct world *w, struct md *pf)
{
	memset(g, 0, sizeof(*g));
	g->w = w;
	g->pf = pf;
}

void guest_create(struct guests *g, uint16_t gvmi, uint64_t mem_len,
		  const struct qhca_config *cfg)
{
	struct md *md = md_create_vf(g->pf, gvmi, mem_len, cfg);

	g->guest[gvmi].md = md;
	md->host.trace = g->pf->host.trace;
	md->host.idle = on_idle;
	md->host.idle_arg = g;
}

void guests_destroy(struct guests *g)
{
	for (uint16_t gvmi = 1; gvmi <= MAX_GUESTS; gvmi++)
		if (g->guest[gvmi].md)
			md_destroy_vf(g->guest[gvmi].md);
}

void guest_start(struct guests *g, uint16_t gvmi, const struct md_init *init)
{
	struct md *md = g->guest[gvmi].md;

	host_s2_open(&g->pf->host, &md->host, ATTR(gvmi));
	forget(g, gvmi);
	md_start(md, init);
}
