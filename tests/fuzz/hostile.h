/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The security record of QEMU's former paravirtual RDMA device, as a list of
 * what must not happen here: one test for each kind of bug, named by the kind.
 * tests/qtest has them under /qhca/record too, for what the adapter adds; there
 * `chunks` is both remap and length.
 *
 *   hostile_queue.c     num_sge    CVE-2018-20124
 *                       huge_queue CVE-2018-20125
 *                       read       CVE-2018-20191
 *                       loop       CVE-2018-20216
 *                       ring_page  CVE-2023-1544
 *   hostile_memory.c    remap      CVE-2021-3582
 *                       length     CVE-2021-3607
 *                       unmap      CVE-2021-3608
 *   hostile_life.c      leak       CVE-2018-20123, 20126
 *                       early      CVE-2022-1050
 *
 * The host is the fuzzer's (guard.h): it ends the program when the device
 * writes memory that it may not write, makes too many accesses in a call, or does not
 * become idle.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "guard.h"

#define PD		1
#define IOVA		0x10000000ull
#define MR_LEN		(4 * 4096u)
#define LOG_DEPTH	3
#define DEPTH		(1u << LOG_DEPTH)
#define LOG_STRIDE	7
#define LOG_RSTRIDE	6
#define MAX_SGE		4		/* of a send WQE, by the stride */
#define RECORD		(1u << 13)	/* of queues made here */
#define RIGHTS		(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC)

/* A device with two queue pairs that are connected to each other. */
struct rig {
	struct guard *g;
	struct md *md;
	struct md_cq cq;
	struct md_srq srq;
	struct md_qp qp[2];
	struct md_mr mr;
};

/* Caches of one line each, so that everything comes from memory again. */
void rig_start(struct rig *r);
/* rig_start(), a region at IOVA, and two RC QPs; the second's SRQ if @srq. */
void rig_new(struct rig *r, bool srq);
/* Checks that the device is idle and alive, and that its heap has not grown. */
void rig_free(struct rig *r);

void rig_make_qp(struct rig *r, unsigned int i, struct md_srq *srq);
/* Connects @qp to the QP of @host that has the number @dest_qpn there. */
void rig_connect(struct rig *r, struct md_qp *qp, uint32_t dest_qpn,
		 unsigned int host);
/* The device may write the hardware part of the record at @rec_offset. */
void rig_allow_queue(struct rig *r, const struct md_buf *b,
		     uint32_t rec_offset);
/* Input of CREATE_QP and INIT_HCA that is right but for what the test changes. */
void rig_fill_qp(struct rig *r, struct qhca_qpc_sw *in);
void rig_fill_init(struct qhca_init_hca *in, uint16_t sets);

/* Returns the status of the command, which the device must answer. */
int rig_cmd(struct rig *r, uint16_t opcode, uint32_t index, uint32_t param,
	    const void *in, uint32_t in_len);
void rig_ring(struct rig *r, struct md_qp *qp, uint32_t pi);
uint8_t rig_state(struct rig *r, unsigned int i);
/* The next completion's status; -1: none. */
int rig_poll(struct rig *r);
bool rig_have_event(struct rig *r, uint8_t type);
/* An ACK or another answer from host 2, which is ours. */
void rig_answer(struct rig *r, struct md_qp *qp, uint8_t opcode, uint32_t psn);
void rig_pass_time(struct rig *r, uint64_t ns);
/* A message of @len bytes from the first to the second goes through. */
void rig_assert_works(struct rig *r, uint32_t len);

/* Watches whether the device reads this byte before rig_assert_not_read(). */
void rig_watch(struct rig *r, uint64_t addr);
void rig_assert_not_read(struct rig *r);

#endif
