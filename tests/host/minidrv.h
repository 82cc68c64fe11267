/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A very small driver on the fake host (host.h): registers, commands, doorbells,
 * queues.  It reaches the device as the kernel driver does and in no other way, so
 * the simulator and the fuzz targets share it.
 *
 * Nothing here is careful of the driver's own mistakes: a call that the device
 * refuses when it should not ends the program with a message.
 */
#ifndef QHCA_MINIDRV_H
#define QHCA_MINIDRV_H

#include "host.h"

#define MD_MAX_SGE	32
#define MD_PAGE		HOST_PAGE

struct md;
struct md_odp;

/* A buffer as the device addresses it: contiguous, or scattered 4 KiB pages. */
struct md_buf {
	uint64_t *page;		/* bus address of each page */
	uint32_t num_pages;
	uint64_t root;		/* translation root; base when not scattered */
	uint8_t levels;
	uint64_t len;
	struct md_odp *odp;	/* NULL, or the region whose pages come and go */
};

struct md_mr {
	struct md_buf buf;
	uint64_t iova, len;
	uint32_t key;		/* L_Key and R_Key */
	uint32_t pd, access;
};

struct md_cq {
	struct md *md;
	uint32_t cqn, log_depth, rec_offset;
	struct md_buf buf;
	uint32_t ci;
};

struct md_srq {
	uint32_t srqn, log_depth, log_stride, rec_offset;
	struct md_buf buf;
	uint32_t free, tail, pi;	/* slots; posted */
	uint64_t *wr_id;		/* by slot */
	struct md_buf grown;		/* while it grows: the driver writes both */
	uint32_t grown_rec;		/* offset of its record; 0: does not grow */
};

struct md_qp_init {
	uint8_t type;			/* enum qhca_qp_type */
	uint16_t flags;			/* QHCA_QP_*; HAS_SQ, HAS_RQ by depth */
	uint8_t sq_log_depth, rq_log_depth;
	uint8_t sq_log_stride, rq_log_stride;
	uint8_t sq_max_sge, rq_max_sge;	/* 0: as many as the stride has room for */
	bool no_rq;
	uint32_t rq_threshold;
	uint32_t pd, db_page;
	struct md_cq *send_cq, *recv_cq;
	struct md_srq *srq;
	uint32_t xrcd;			/* XRC target */
};

struct md_qp {
	uint32_t qpn;
	struct md_qp_init init;
	uint32_t sq_offset, rq_offset, rec_offset;
	struct md_buf buf;
	uint32_t sq_pi, rq_pi;
	uint32_t sq_ci, rq_ci;		/* completed, kept by the caller */
};

struct md_sge {
	uint64_t addr;
	uint32_t len;
	uint32_t key;
};

struct md_wr {
	uint8_t opcode, flags;		/* enum qhca_wqe_opcode, QHCA_WQE_F_* */
	uint64_t wr_id;
	uint32_t imm;			/* or key to invalidate */
	uint32_t num_sge;
	const struct md_sge *sge;
	const void *inline_data;	/* with QHCA_WQE_F_INLINE */
	uint32_t inline_len;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t xrc_srqn;
	uint64_t swap_add, compare;
	const struct qhca_wqe_ud *ud;
	const struct qhca_wqe_bind *bind;
	const struct qhca_wqe_reg *reg;
	uint32_t flush_len;		/* FLUSH: of raddr, rkey; */
	uint8_t flush_type, flush_level;	/* QHCA_FLUSH_* */
};

struct md_conn {			/* all attributes of MODIFY_QP */
	uint32_t dest_qpn, sq_psn, rq_psn, qkey, access;
	uint8_t mtu;			/* enum qhca_mtu */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	struct qhca_av av;
};

struct md_init {
	struct qhca_geometry cache[QHCA_NUM_CACHES];	/* 0 x 0: default */
	struct qhca_geometry s2;			/* the same of QHCA_CACHE_S2 */
	uint32_t eth_mtu;				/* 0: 4200 */
	uint8_t log_pt, log_qp, log_cq, log_srq;	/* 0: 10, 8, 8, 6 */
	uint8_t log_eq;					/* 0: 10 */
	uint32_t flags;					/* QHCA_INIT_* */
	bool scatter;		/* queues and regions in shuffled pages */
};

struct md {
	struct host host;		/* first: md_of() */
	uint32_t rng;
	struct md_init init;
	struct qhca_caps caps;
	uint64_t in_mbox, out_mbox;
	uint32_t next_key, next_qpn, next_cqn, next_srqn;
	uint64_t pt;			/* bus address of the protection table */
	uint32_t eq_ci;
	uint32_t cq_eqn;		/* of the CQs that are made next */
	uint64_t eq_ring, eq_rec;
	uint8_t mac[6], gid[16];
	uint64_t table[QHCA_NUM_TABLES];

	void **owned;			/* freed with the host */
	uint32_t num_owned;
};

/* Returns the driver of a host that has one. */
static inline struct md *md_of(struct host *h)
{
	return (struct md *)h;
}

/* @number makes MAC 02:00:00:00:00:@number and GID ::ffff:10.0.0.@number. */
struct md *md_create(unsigned int number, uint64_t mem_len,
		     const struct qhca_config *cfg);
void md_destroy(struct md *md);
/*
 * VF @gvmi of the adapter of @pf, whose number is that of @pf plus 16 times @gvmi.  It is
 * destroyed before @pf.
 */
struct md *md_create_vf(struct md *pf, uint16_t gvmi, uint64_t mem_len,
			const struct qhca_config *cfg);
void md_destroy_vf(struct md *md);
/* Reset, enable, INIT_HCA, tables, EQ 0, port, GID 0 (IPv4) and 1 (IPv6). */
void md_start(struct md *md, const struct md_init *init);

/* Runs the engine until it has nothing to do now. */
static inline void md_settle(struct md *md)
{
	host_run(&md->host);
}

/* Is the HCA in the fatal state, in which it executes no command? */
bool md_dead(struct md *md);

/* Makes a command and waits for it; returns enum qhca_cmd_status. */
int md_cmd(struct md *md, uint16_t opcode, uint32_t index, uint32_t param,
	   const void *in, uint32_t in_len, void *out, uint32_t out_len,
	   uint64_t *out_param);

/* Zeroed memory of the program, not the device's, that lives as long as @md. */
void *md_own(struct md *md, size_t n, size_t size);
static inline uint64_t md_alloc(struct md *md, uint64_t len, uint64_t align)
{
	return host_alloc(&md->host, len, align);
}

static inline void *md_ptr(struct md *md, uint64_t addr)
{
	return host_ptr(&md->host, addr);
}

/* Counts the accesses to @len bytes of @b at @off, which lie in one page. */
void md_watch(struct md *md, struct host_watch *watch, const struct md_buf *b,
	      uint64_t off, uint64_t len);
void md_buf_alloc(struct md *md, struct md_buf *b, uint64_t len);
void md_buf_write(struct md *md, const struct md_buf *b, uint64_t off,
		  const void *data, uint64_t len);
void md_buf_read(struct md *md, const struct md_buf *b, uint64_t off,
		 void *data, uint64_t len);
uint32_t md_buf_get32(struct md *md, const struct md_buf *b, uint64_t off);
void md_buf_put32(struct md *md, const struct md_buf *b, uint64_t off,
		  uint32_t v);

/* Registers @len new bytes at @iova. */
void md_reg_mr(struct md *md, struct md_mr *mr, uint32_t pd, uint64_t iova,
	       uint64_t len, uint32_t access);
void md_pte_write(struct md *md, uint32_t index, const struct qhca_pte *pte);

void md_cq_create(struct md *md, struct md_cq *cq, uint32_t log_depth);
/* The same with moderation: an event after @count completions or @usec. */
void md_cq_create_moderated(struct md *md, struct md_cq *cq, uint32_t log_depth,
			    uint16_t count, uint16_t usec);
/* Arms the CQ for completions that have not been polled yet. */
void md_arm(struct md_cq *cq, bool solicited);
/* Takes the next CQE; returns false if there is none. */
bool md_poll(struct md_cq *cq, struct qhca_cqe *cqe);

void md_srq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		   uint32_t log_depth, uint32_t log_stride, uint32_t limit);
/* The same with a threshold other than a quarter of the depth. */
void md_srq_create_threshold(struct md *md, struct md_srq *srq, uint32_t pd,
			     uint32_t log_depth, uint32_t log_stride,
			     uint32_t threshold);
/* The same for XRC, of domain @xrcd, completing to @cq.  Returns the status. */
int md_xsrq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		   uint32_t log_depth, uint32_t log_stride, uint32_t xrcd,
		   const struct md_cq *cq);
/* The handles in completions of an XRC SRQ, and of a QP. */
#define MD_SRQ_HANDLE	0x5000000000000000ull
#define MD_QP_HANDLE	0x4000000000000000ull
/* Returns false if the SRQ is full. */
bool md_srq_post(struct md *md, struct md_srq *srq, uint64_t wr_id,
		 const struct md_sge *sge, uint32_t num_sge);
void md_srq_free(struct md *md, struct md_srq *srq, uint32_t slot);
/*
 * Doubles the depth.  begin() makes a copy, and from then on the driver posts to both;
 * end() has the device move to the copy, and fills the old ring with rubbish.
 */
void md_srq_grow_begin(struct md *md, struct md_srq *srq);
void md_srq_grow_end(struct md *md, struct md_srq *srq);

/* Returns the command's status. */
int md_qp_create(struct md *md, struct md_qp *qp,
		 const struct md_qp_init *init);
int md_qp_modify(struct md *md, struct md_qp *qp, uint8_t state, uint32_t mask,
		 const struct md_conn *conn);
/* Brings a QP from RESET to RTS in three steps; ends the program if one is refused. */
void md_qp_connect(struct md *md, struct md_qp *qp, const struct md_conn *conn);
/* Those of a plain RC QP of the kernel, which completes to @cq; @dest_qpn and @av are unset. */
struct md_qp_init md_qp_rc(struct md_cq *cq, uint32_t pd);
struct md_conn md_conn_rc(void);
int md_qp_query(struct md *md, struct md_qp *qp, struct qhca_query_qp *out);
int md_qp_destroy(struct md *md, struct md_qp *qp);

/* Writes the WQE and publishes sq_pi; md_ring() rings if the device has requested it. */
void md_post_send(struct md *md, struct md_qp *qp, const struct md_wr *wr);
void md_ring(struct md *md, struct md_qp *qp);
void md_post_recv(struct md *md, struct md_qp *qp, uint64_t wr_id,
		  const struct md_sge *sge, uint32_t num_sge);

/* Takes the next asynchronous event; returns false if there is none. */
bool md_event(struct md *md, struct qhca_eqe *eqe);

/* The GID 10.@net.0.@number, as IPv4's are, or fe80::@net:@number. */
void md_make_gid(uint8_t gid[16], unsigned int number, uint8_t net, bool v6);
/*
 * Entry @index of the GID table: 10.@net.0.@number or fe80::@net:@number, in VLAN
 * @vlan (QHCA_GID_NO_VLAN: none).  Returns the command's status.
 */
int md_set_gid(struct md *md, uint32_t index, uint8_t net, bool v6,
	       uint16_t vlan);
/* Writes an address vector between such GIDs. */
void md_av_net(const struct md *md, struct qhca_av *av, unsigned int number,
	       uint32_t index, uint8_t net, bool v6);
/* Writes an address vector to host @number over IPv4 (@v6: link-local IPv6). */
void md_av(const struct md *md, struct qhca_av *av, unsigned int number,
	   bool v6);

#endif /* QHCA_MINIDRV_H */
