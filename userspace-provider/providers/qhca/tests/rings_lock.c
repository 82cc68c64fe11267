/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The lock of a queue, which a program of one thread takes with a plain store.
 */
#include <pthread.h>
#include <sched.h>

#include "rings.h"

#define THREADS		2
#define TURNS		100000

struct counted {
	struct qhca_lock lock;
	atomic_int started;
	volatile unsigned int turns;	/* under the lock */
};

static void *count_turns(void *arg)
{
	struct counted *c = arg;
	int i;

	atomic_fetch_add(&c->started, 1);
	for (i = 0; i < TURNS; i++) {
		qhca_lock(&c->lock);
		c->turns++;
		qhca_unlock(&c->lock);
	}
	return NULL;
}

void test_lock(void)
{
	struct counted c = {};
	pthread_t thread[THREADS];
	int i;

	qhca_lock_init(&c.lock, false);
	qhca_lock(&c.lock);
	check(qhca_trylock(&c.lock));
	qhca_unlock(&c.lock);

	/* This program has had one thread so far.  Those that begin now wait. */
	qhca_lock_init(&c.lock, true);
	qhca_lock(&c.lock);
	check(!qhca_trylock(&c.lock));
	for (i = 0; i < THREADS; i++)
		check(!pthread_create(&thread[i], NULL, count_turns, &c));
	while (atomic_load(&c.started) < THREADS)
		sched_yield();
	for (i = 0; i < 1000; i++)
		sched_yield();
	check(!c.turns);
	qhca_unlock(&c.lock);
	for (i = 0; i < THREADS; i++)
		check(!pthread_join(thread[i], NULL));
	check(c.turns == THREADS * TURNS);
	check(qhca_trylock(&c.lock));
	check(!qhca_trylock(&c.lock));
	qhca_unlock(&c.lock);
}
