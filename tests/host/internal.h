/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the fake host share, and its users do not need. */
#ifndef QHCA_HOST_INTERNAL_H
#define QHCA_HOST_INTERNAL_H

#include "minidrv.h"
#include "odp.h"

/* An HCA with all functions that @h has had. */
void host_create(struct host *h);

uint32_t md_rand(struct md *md);
/* Ends the program if a command has failed. */
void md_must(int status, const char *what);
void md_buf_describe(const struct md_buf *b, struct qhca_buf *to);
/* A receive WQE at @off, all but its `next` field. */
void md_fill_rwqe(struct md *md, const struct md_buf *b, uint64_t off,
		  uint64_t wr_id, const struct md_sge *sge, uint32_t num_sge);

#endif /* QHCA_HOST_INTERNAL_H */
