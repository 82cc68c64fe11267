/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A QP of a guest that waits for frames takes nothing from its neighbours: the guest's
 * other QP, the physical function's, and another guest's.
 *
 * As in scen_isolation.c a page is asked for every so often, while a neighbour writes as
 * fast as it can; here the host domain has taken the frame away, and brings it late.
 */
#include "stage2_net.h"

#include <stddef.h>

#define LENGTH		100000000ull	/* ns of each measurement */
#define PERIOD		5000000ull	/* a page is asked for so often, and */
#define HELD		4000000ull	/* its frame comes so much later */

struct measured {
	uint32_t done;			/* WRITEs of the neighbour */
	uint64_t worst;			/* ns from post to completion */
	uint32_t asked;
	uint64_t faults;
};

static uint64_t victim_page(const struct conn *c)
{
	return c->to_mr.buf.page[0];
}

/* The neighbour's requests follow each other. */
static void go(struct net *n, struct conn *c, uint64_t *since, struct measured *m)
{
	if (*since && completed(c)) {
		if (n->p->w.now - *since > m->worst)
			m->worst = n->p->w.now - *since;
		m->done++;
		*since = 0;
	}
	if (!*since) {
		*since = n->p->w.now;
		write_own(c);
	}
}

static struct measured measure(struct net *n, struct conn *neighbour, bool absent)
{
	uint64_t end = n->p->w.now + LENGTH, next = n->p->w.now, since = 0;
	uint64_t faults = count1(n, QHCA_CNT_page_faults2);
	struct measured m = { 0 };
	bool held = false;

	while (n->p->w.now < end && check_ok()) {
		go(n, neighbour, &since, &m);
		if (n->p->w.now >= next && !held) {
			CHECK(!m.asked++ || completed(&n->first));
			n->g.absent = absent;
			if (absent)
				CHECK(guest_take(&n->g, 1, victim_page(&n->first)));
			write_own(&n->first);
		} else if (n->p->w.now >= next) {
			n->g.absent = false;
		}
		if (n->p->w.now >= next) {
			next += held ? PERIOD - HELD : HELD;
			held = !held;
		}
		world_wait(&n->p->w, n->p->w.now + 1000);
		guests_work(&n->g);
	}
	pass(n, 10 * MS);
	CHECK(completed(&n->first) && arrived(&n->first));
	CHECK(!since || completed(neighbour));
	m.faults = count1(n, QHCA_CNT_page_faults2) - faults;
	return m;
}

static void beside(struct pair *p, size_t conn)
{
	struct measured present, absent;
	struct conn *neighbour;
	struct net n;

	open_net(&n, p);
	neighbour = (struct conn *)((char *)&n + conn);
	warm_up(&n);
	present = measure(&n, neighbour, false);
	absent = measure(&n, neighbour, true);
	note("%u WRITEs, the slowest %llu ns; while frames are absent %u, %llu ns",
	     present.done, (unsigned long long)present.worst, absent.done,
	     (unsigned long long)absent.worst);
	CHECK_EQ(present.asked, LENGTH / PERIOD);
	CHECK_EQ(absent.asked, LENGTH / PERIOD);
	CHECK_EQ(present.faults, 0);
	CHECK(absent.faults >= absent.asked);
	/* The WRITEs are so many that the loss of a part of a period would show. */
	CHECK(present.done > 20 * LENGTH / PERIOD);
	CHECK(absent.done >= present.done - present.done / 5);
	CHECK(absent.worst <= 3 * present.worst && absent.worst < HELD / 4);
	close_net(&n);
}

static void same_guest(struct pair *p)
{
	beside(p, offsetof(struct net, second));
}

static void other_guest(struct pair *p)
{
	beside(p, offsetof(struct net, to_other));
}

static void physical_function(struct pair *p)
{
	beside(p, offsetof(struct net, to_pf));
}

#define ISOLATION(fn) NAMED(RC, "stage 2: isolation of " #fn, fn, .roomy = true)

const struct scenario stage2_isolation_scenarios[] = {
	ISOLATION(same_guest), ISOLATION(other_guest), ISOLATION(physical_function),
	{ 0 }
};
