/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The lock of a queue.
 */
#ifndef __QHCA_LOCK_H__
#define __QHCA_LOCK_H__

#include <pthread.h>
#include <stdbool.h>

#include <util/compiler.h>

/*
 * A lock that does nothing if the program has promised to use one thread only.
 */
struct qhca_lock {
	pthread_spinlock_t lock;
	bool needed;
};

static inline void qhca_lock_init(struct qhca_lock *lock, bool needed)
{
	pthread_spin_init(&lock->lock, PTHREAD_PROCESS_PRIVATE);
	lock->needed = needed;
}

static inline void qhca_lock_fini(struct qhca_lock *lock)
{
	pthread_spin_destroy(&lock->lock);
}

static inline void qhca_lock(struct qhca_lock *lock)
{
	if (likely(lock->needed))
		pthread_spin_lock(&lock->lock);
}

static inline bool qhca_trylock(struct qhca_lock *lock)
{
	return !lock->needed || !pthread_spin_trylock(&lock->lock);
}

static inline void qhca_unlock(struct qhca_lock *lock)
{
	if (likely(lock->needed))
		pthread_spin_unlock(&lock->lock);
}

#endif /* __QHCA_LOCK_H__ */
