/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The lock of a queue.
 *
 * Posting and polling cost a few dozen instructions, and pthread_spin_lock() and
 * pthread_spin_unlock() are a good part of that: calls through the procedure
 * linkage table, and a locked instruction.  In an emulated processor, which looks
 * up the target of each indirect jump, they took a fifth of the time of a small
 * message.  So the lock is inline, and a program of one thread, which the C
 * library tells of, takes it without a locked instruction.  It does take it: a
 * thread that begins between ibv_wr_start() and ibv_wr_complete() finds it taken.
 */
#ifndef __QHCA_LOCK_H__
#define __QHCA_LOCK_H__

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define QHCA_SINGLE_THREADED	__libc_single_threaded
#endif
#endif
#ifndef QHCA_SINGLE_THREADED
#define QHCA_SINGLE_THREADED	false
#endif

#include <util/compiler.h>

/*
 * A lock that does nothing if the program has promised to use one thread only.
 */
struct qhca_lock {
	atomic_uint taken;	/* a byte is no atomic on every machine */
	bool needed;
};

static inline void qhca_lock_init(struct qhca_lock *lock, bool needed)
{
	atomic_init(&lock->taken, 0);
	lock->needed = needed;
}

static inline void qhca_spin_hint(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	asm volatile("yield" ::: "memory");
#endif
}

static inline void qhca_lock(struct qhca_lock *lock)
{
	if (unlikely(!lock->needed))
		return;
	if (QHCA_SINGLE_THREADED) {
		atomic_store_explicit(&lock->taken, 1, memory_order_relaxed);
		return;
	}
	while (atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire))
		while (atomic_load_explicit(&lock->taken, memory_order_relaxed))
			qhca_spin_hint();
}

static inline bool qhca_trylock(struct qhca_lock *lock)
{
	return !lock->needed ||
	       !atomic_exchange_explicit(&lock->taken, 1,
					 memory_order_acquire);
}

static inline void qhca_unlock(struct qhca_lock *lock)
{
	if (likely(lock->needed))
		atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

#endif /* __QHCA_LOCK_H__ */
