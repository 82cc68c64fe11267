/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A guest in user space: the small driver of the fake host (tests/host), on a
 * function that VFIO passes to this process.  device.c has what the driver calls
 * the engine for, and makes registers and doorbells of it.
 *
 * The guest's memory is one array, and its bus address is an offset into it, as
 * with the fake host.  The process maps it for VFIO as a VMM does; the first page
 * is never mapped.  The guest can copy memory by RDMA WRITE to itself, with two
 * connected queue pairs, and be interrupted: the shape of a driver of the
 * kernel's VFIO selftests.
 */
#ifndef QHCA_TEST_VFIO_GUEST_H
#define QHCA_TEST_VFIO_GUEST_H

#include "minidrv.h"
#include "vfio/vfio.h"

#define GUEST_MEMORY	(64ull << 20)
#define GUEST_PD	1
#define GUEST_ALL	(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC)

/*
 * What md_create() opens next, and beside which host, if any; the driver has no arguments
 * for them.
 */
extern const char *guest_address;
extern struct host *guest_beside;

struct guest {
	struct md *md;
	struct vfio *vfio;
	struct md_cq cq;
	struct md_qp qp[2];
};

/* Opens the function and maps all memory.  Nothing runs yet. */
void guest_open(struct guest *g, const char *address);
void guest_close(struct guest *g);
/*
 * The same without memory: guest_map() follows.
 */
void guest_open_unmapped(struct guest *g, const char *address);
/*
 * Another function of the same guest: it has the memory of @first, and what that one maps;
 * its driver uses the second half.  It is closed before @first.
 */
void guest_open_beside(struct guest *g, const char *address, struct guest *first);

/* Everything from reset to two connected queue pairs. */
void guest_start(struct guest *g);
/* The same with queues and regions in pages that nodes lead to. */
void guest_start_scattered(struct guest *g);
/* Two queue pairs; and two in place of those that failed. */
void guest_connect(struct guest *g);
void guest_reconnect(struct guest *g);

void *guest_ptr(struct guest *g, uint64_t addr);
/* Part of the guest's memory appears, goes, or is replaced by other pages. */
int guest_map(struct guest *g, uint64_t addr, uint64_t len, bool writable);
int guest_unmap(struct guest *g, uint64_t addr, uint64_t len);

/* Posts one request of QP 0 to QP 1, and waits for its completion. */
enum qhca_wc_status guest_rdma(struct guest *g, uint8_t opcode, uint64_t local,
			       uint32_t lkey, uint64_t remote, uint32_t rkey,
			       uint32_t len);
/* The same by parts; a poll that finds nothing in @ms returns -1. */
void guest_post(struct guest *g, uint8_t opcode, uint64_t local, uint32_t lkey,
		uint64_t remote, uint32_t rkey, uint32_t len);
int guest_poll(struct guest *g, unsigned int ms);

/* Writes a protection entry, whatever it says. */
void guest_pte(struct guest *g, uint32_t index, const struct qhca_pte *pte);
/* Makes an entry that the small driver has written this function's. */
void guest_own(struct guest *g, uint32_t key);
/* A round of a loop that waits for the device. */
void guest_wait(struct guest *g);

/* A region of @len new bytes, pages aligned; @access GUEST_ALL. */
void guest_region(struct guest *g, struct md_mr *mr, uint64_t len);

/* The cause of the function's death, 0 if it lives; waits for it up to @ms. */
uint32_t guest_fatal(struct guest *g, unsigned int ms, uint32_t *info);

#endif
