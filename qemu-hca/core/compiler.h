/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the engine asks of the compiler beyond C11.
 */
#ifndef HCA_CORE_COMPILER_H
#define HCA_CORE_COMPILER_H

/*
 * QEMU is compiled with -ftrivial-auto-var-init=zero, which clears each variable of a
 * function where it is declared.  A large one on the way of each packet is exempt from
 * that with this attribute; all that is read of it must have been written before.
 */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define HCA_UNINITIALIZED	__attribute__((uninitialized))
#endif
#endif
#ifndef HCA_UNINITIALIZED
#define HCA_UNINITIALIZED
#endif

/* A way seldom taken, whose variables and registers the caller need not pay for. */
#define HCA_NOINLINE		__attribute__((noinline))

#endif /* HCA_CORE_COMPILER_H */
