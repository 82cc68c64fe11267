/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of qhca-pool share.
 */
#ifndef POOL_H
#define POOL_H

#include <infiniband/qhcadv.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define PAGE		4096ul
#define MIB		(1ul << 20)
#define MAX_PIECES	32768

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

extern const char *device_name;
extern int gid_index;

struct ends {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];	/* each other's peer */
};

/* pool_common.c */
struct ibv_context *open_it(void);
uint64_t counter(const char *name);
struct qhcadv_pool_attr query(struct ibv_context *ctx);
struct ends open_ends(void);
/* One request of the first QP; its status. The QPs are whole again after it. */
enum ibv_wc_status move(struct ends *e, enum ibv_wr_opcode opcode, uint64_t local,
			uint32_t lkey, uint64_t remote, uint32_t rkey, uint32_t length);
enum ibv_wc_status write_to(struct ends *e, struct ibv_mr *from, struct ibv_mr *to,
			    uint32_t length);
struct qhcadv_pool_mem *pool_mem(struct ibv_context *ctx, size_t length);
void *pages(size_t length);
bool is_all(const void *p, uint8_t byte, size_t length);
/* Takes pieces of a length until there are none; how many. */
int take_all(struct ibv_context *ctx, size_t length, struct qhcadv_pool_mem **mem);

/* pool_alloc.c */
void case_query(void);
void case_allocate(void);
void case_mapped(void);
void case_unmap(void);
void case_exhaustion(void);
void case_fragmentation(void);

/* pool_access.c */
void case_data(void);
void case_permission(void);
void case_refused(void);
void case_rereg(void);
void case_window(void);
void case_bank(void);
void case_crossed(void);

/* pool_process.c */
void case_fork(void);
void case_two_processes(void);
void case_killed(void);
void case_hold(void);

/* pool_time.c */
void case_churn(void);
void case_registration(void);

#endif /* POOL_H */
