/*
 * SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB)
 */
/*
 * qhca uverbs ABI: structures that libqhca and qhca_ib.ko exchange through
 * /dev/infiniband/uverbsN.  All structures are naturally aligned multiples of 8
 * bytes and the same for 32-bit and 64-bit processes.  The driver refuses
 * unknown bits in a comp_mask or flags word; trailing bytes must be zero.
 */
#ifndef QHCA_ABI_USER_H
#define QHCA_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define QHCA_UVERBS_ABI_VERSION 1

struct qhca_alloc_ucontext_req {
	__aligned_u64 comp_mask;
};

struct qhca_alloc_ucontext_resp {
	__aligned_u64 comp_mask;
	__aligned_u64 db_mmap_offset;	/* pass to mmap(): one doorbell page */
	__u32 db_page;			/* its number */
	__u32 db_mmap_size;
	__u32 max_inline;
	__u32 max_sge;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_cqe;
	__u32 max_srq_wr;
	__aligned_u64 features;		/* QHCA_FEAT_* of the hardware ABI */
	__aligned_u64 clock_hz;
};

struct qhca_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

struct qhca_create_cq_req {
	__aligned_u64 comp_mask;
	__aligned_u64 buf_addr;		/* page aligned: ring, then the record */
	__u32 buf_length;
	__u32 rec_offset;
	__u32 log_depth;
	__u32 flags;
	__u32 threshold;		/* 0: driver's default */
	__u32 reserved;
};

struct qhca_create_cq_resp {
	__aligned_u64 comp_mask;
	__u32 cqn;
	__u32 reserved;
};

struct qhca_resize_cq_req {
	__aligned_u64 buf_addr;
	__u32 buf_length;
	__u32 rec_offset;
	__u32 log_depth;
	__u32 threshold;		/* 0: driver's default */
};

struct qhca_create_qp_req {
	__aligned_u64 comp_mask;
	__aligned_u64 buf_addr;		/* page aligned: rings and the record */
	__aligned_u64 handle;		/* returned in completions */
	__u32 buf_length;
	__u32 sq_offset;
	__u32 rq_offset;
	__u32 rec_offset;
	__u8 sq_log_depth;
	__u8 sq_log_stride;
	__u8 rq_log_depth;
	__u8 rq_log_stride;
	__u32 rq_threshold;		/* 0: driver's default */
	__aligned_u64 reserved;
};

struct qhca_create_qp_resp {
	__aligned_u64 comp_mask;
	__u32 qpn;
	__u32 reserved;
};

struct qhca_create_srq_req {
	__aligned_u64 comp_mask;
	__aligned_u64 buf_addr;		/* page aligned: slots, then the record */
	__aligned_u64 handle;		/* returned in XRC completions */
	__u32 buf_length;
	__u32 rec_offset;
	__u8 log_depth;
	__u8 log_stride;
	__u16 reserved0;
	__u32 threshold;		/* 0: driver's default */
};

struct qhca_create_srq_resp {
	__aligned_u64 comp_mask;
	__u32 srqn;
	__u32 reserved;
};

/*
 * With IB_SRQ_MAX_WR: a larger buffer for the slots, which keep their numbers.
 */
struct qhca_modify_srq_req {
	__aligned_u64 comp_mask;
	__aligned_u64 buf_addr;		/* page aligned: slots, then the record */
	__u32 buf_length;
	__u32 rec_offset;
	__u32 log_depth;
	__u32 threshold;		/* 0: driver's default */
};

/* Address handles live in user space; the kernel only resolves the MAC. */
struct qhca_create_ah_resp {
	__u8 dmac[6];
	__u8 reserved[2];
};

/* Memory of the pool: physically contiguous, registered as pool-direct. */
enum qhca_ib_objects {
	QHCA_IB_OBJECT_POOL = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_ib_pool_methods {
	QHCA_IB_METHOD_POOL_ALLOC = (1U << UVERBS_ID_NS_SHIFT),
	QHCA_IB_METHOD_POOL_FREE,
	QHCA_IB_METHOD_POOL_QUERY,
};

enum qhca_ib_pool_alloc_attrs {
	QHCA_IB_ATTR_POOL_ALLOC_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	QHCA_IB_ATTR_POOL_ALLOC_LENGTH,		/* in: __u64, bytes */
	QHCA_IB_ATTR_POOL_ALLOC_RESP,		/* out: qhca_pool_alloc_resp */
};

enum qhca_ib_pool_free_attrs {
	QHCA_IB_ATTR_POOL_FREE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_ib_pool_query_attrs {
	QHCA_IB_ATTR_POOL_QUERY_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/* out: qhca_alloc_ucontext_resp of an imported context */
enum qhca_ib_query_context_attrs {
	QHCA_IB_ATTR_QUERY_CONTEXT_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/* of UVERBS_OBJECT_DEVICE */
enum qhca_ib_device_methods {
	QHCA_IB_METHOD_QUERY_CLOCK = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_ib_query_clock_attrs {
	/* out: __u64, the clock of completions' timestamps */
	QHCA_IB_ATTR_QUERY_CLOCK_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_ib_dm_methods {
	QHCA_IB_METHOD_DM_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_ib_dm_query_attrs {
	QHCA_IB_ATTR_DM_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	QHCA_IB_ATTR_DM_QUERY_RESP,		/* out: qhca_dm_query_resp */
};

enum qhca_ib_alloc_dm_attrs {
	/* out: __u64; pass to mmap() */
	QHCA_IB_ATTR_ALLOC_DM_MMAP_OFFSET = (1U << UVERBS_ID_NS_SHIFT),
};

struct qhca_dm_query_resp {
	__aligned_u64 mmap_offset;	/* pass to mmap() */
	__aligned_u64 length;		/* bytes that were asked for */
};

struct qhca_pool_alloc_resp {
	__aligned_u64 mmap_offset;	/* pass to mmap(): all of it, shared */
	__aligned_u64 length;		/* bytes, whole pages */
	__u32 block;			/* it lies in */
	__u32 reserved;
};

struct qhca_pool_query_resp {
	__aligned_u64 total;		/* bytes */
	__aligned_u64 free;
	__aligned_u64 largest_free;	/* the most one allocation may have now */
	__u32 num_blocks;
	__u32 page_size;		/* what lengths are rounded up to */
	__u32 max_keys;			/* registrations the device keeps on chip */
	__u32 reserved;
};

#endif /* QHCA_ABI_USER_H */
