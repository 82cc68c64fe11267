/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory: translation trees, regions and windows, the pool, device memory.
 */
#ifndef QHCA_MEM_H
#define QHCA_MEM_H

#include "qhca_ib.h"

/**
 * struct qhca_at_node - a node of a translation tree, kernel memory.
 * @ent:  entries, QHCA_ATE_*
 * @dma:  their bus address; DMA_MAPPING_ERROR until they are mapped
 * @size: bytes, a power of two from 64 to 4096
 */
struct qhca_at_node {
	__le64 *ent;
	dma_addr_t dma;
	u32 size;
};

/**
 * struct qhca_at - a translation tree as the hardware walks it.
 * @base:       bus address of the root, or of the memory itself with 0 levels
 * @num_nodes:  nodes of the tree, 0 with 0 levels
 * @page_shift: log2 of the page that a level 1 entry translates
 * @levels:     0 to QHCA_MAX_AT_LEVELS
 * @dir:        enum dma_data_direction: may the device write entries, too?
 * @one:        the node, if there is only one
 * @many:       the nodes otherwise, those of level 1 first and the root last
 */
struct qhca_at {
	u64 base;
	u32 num_nodes;
	u8 page_shift;
	u8 levels;
	u8 dir;
	union {
		struct qhca_at_node one;
		struct qhca_at_node *many;
	};
};

/**
 * struct qhca_qbuf - the buffer of a queue: its rings and its record.
 * @umem:   pinned memory of a process's queue, NULL for the kernel's
 * @cpu:    coherent memory of the kernel's queue, NULL for a process's
 * @dma:    bus address of @cpu
 * @length: bytes
 * @at:     translation by which the device reaches it
 */
struct qhca_qbuf {
	struct ib_umem *umem;
	void *cpu;
	dma_addr_t dma;
	u32 length;
	struct qhca_at at;
};

/**
 * struct qhca_pool_buf - pool memory that a process owns.
 * @mmap:   see struct qhca_mmap_entry; the buffer is freed together with it
 * @uc:     the owner, valid as long as the object exists
 * @entry:  in the owner's list, under the owner's lock
 * @addr:   address in the kernel
 * @length: bytes, whole pages
 * @offset: first byte in its block
 * @block:  row of its block in the device's bank
 * @regions: number of regions registered on it, under @uc's lock
 */
struct qhca_pool_buf {
	struct qhca_mmap_entry mmap;
	struct qhca_ucontext *uc;
	struct list_head entry;
	void *addr;
	u64 length;
	u64 offset;
	u32 block;
	u32 regions;
};

/**
 * struct qhca_dm_buf - device memory that a process owns.
 * @mmap:   see struct qhca_mmap_entry; the buffer is freed together with it
 * @length: bytes, whole pages
 */
struct qhca_dm_buf {
	struct qhca_mmap_entry mmap;
	u64 length;
};

struct qhca_dm {
	struct ib_dm ibdm;
	struct qhca_dm_buf *buf;
};

/**
 * struct qhca_mr - a memory region.
 * @index:  number of its protection table entry
 * @lock:   protects @access to @at against readers other than the owner while
 *          rereg_user_mr() replaces them
 * @access: IB_ACCESS_*
 * @umem:   pinned memory of a process, or NULL
 * @pool:   memory of the pool, or NULL
 * @offset: first byte in the block of @pool, or in device memory
 * @odp:    further state of a region on demand, or NULL
 * @at:     its translation; that of a fast registration is written by the
 *          device
 * @pages:  fast registration: page list, written by ib_map_mr_sg()
 * @pages_dma: bus address of @pages
 * @num_pages: entries of @pages in use
 * @max_pages: entries of @pages
 */
struct qhca_mr {
	struct ib_mr ibmr;
	u32 index;
	spinlock_t lock;	/* access, pool, at */
	int access;
	struct ib_umem *umem;
	struct qhca_pool_buf *pool;
	u64 offset;
	struct qhca_odp *odp;
	struct qhca_at at;
	__le64 *pages;
	dma_addr_t pages_dma;
	u32 num_pages;
	u32 max_pages;
};

struct qhca_mw {
	struct ib_mw ibmw;
	u32 index;
};

static inline struct qhca_dm *to_qdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct qhca_dm, ibdm);
}

static inline struct qhca_mr *to_qmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct qhca_mr, ibmr);
}

static inline struct qhca_mw *to_qmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct qhca_mw, ibmw);
}

/* at.c */
int qhca_at_build(struct qhca_ib_dev *dev, struct qhca_at *at,
		  struct ib_umem *umem, unsigned long pgsz, bool may_be_flat);
int qhca_at_build_blank(struct qhca_ib_dev *dev, struct qhca_at *at,
			u32 entries);
void qhca_at_free(struct qhca_ib_dev *dev, struct qhca_at *at);

/* umem.c */
bool qhca_dma_is_bounced(struct qhca_ib_dev *dev, dma_addr_t dma);
void qhca_dma_probe(struct qhca_ib_dev *dev);
int qhca_umem_may_pin(struct qhca_ib_dev *dev);
struct ib_umem *qhca_umem_check(struct qhca_ib_dev *dev, struct ib_umem *umem);
struct ib_umem *qhca_umem_get(struct qhca_ib_dev *dev, u64 addr, u64 length,
			      int access);

/* qbuf.c */
int qhca_qbuf_alloc(struct qhca_ib_dev *dev, struct qhca_qbuf *buf, u32 length);
int qhca_qbuf_pin(struct qhca_ib_dev *dev, struct qhca_qbuf *buf, u64 addr,
		  u32 length);
int qhca_qbuf_pin_cq(struct qhca_ib_dev *dev, struct qhca_qbuf *buf,
		     const struct uverbs_attr_bundle *attrs, u64 addr,
		     u32 length);
void qhca_qbuf_free(struct qhca_ib_dev *dev, struct qhca_qbuf *buf);
void qhca_qbuf_encode(const struct qhca_qbuf *buf, struct qhca_buf *hw);
bool qhca_qbuf_holds(u32 length, u32 offset, u64 size, u32 align);

/* odp.c */
struct qhca_odp_tables {
	u32 stretches;
	u32 nodes;
	u64 bytes;
};

void qhca_odp_tables(struct qhca_odp *odp, struct qhca_odp_tables *t);
bool qhca_odp_is_implicit(u64 start, u64 length, int access);
struct ib_mr *qhca_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 virt, int access);
void qhca_odp_dereg_mr(struct qhca_ib_dev *dev, struct qhca_mr *mr);
int qhca_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
void qhca_odp_caps(struct qhca_ib_dev *dev, struct ib_device_attr *attr);
int qhca_odp_start(struct qhca_ib_dev *dev);
void qhca_odp_stop(struct qhca_ib_dev *dev);

/* odp_advise.c */
int qhca_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice how,
		   u32 flags, struct ib_sge *sg_list, u32 num_sge,
		   struct uverbs_attr_bundle *attrs);

/* key.c */
u32 qhca_hw_access(int access);
int qhca_key_alloc(struct qhca_ib_dev *dev, u32 *index, u32 *key);
void qhca_key_publish(struct qhca_ib_dev *dev, u32 index,
		      const struct qhca_pte *pte, u32 ctrl);
void qhca_key_invalidate(struct qhca_ib_dev *dev, u32 index, u32 what);
int qhca_key_end_region(struct qhca_ib_dev *dev, u32 index, bool force);

/* mr.c */
struct ib_mr *qhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 virt, int access, QHCA_DMAH_PARAM
			       struct ib_udata *udata);
struct ib_mr *qhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				      u64 length, u64 virt, int fd,
				      int access, QHCA_DMAH_PARAM
				      struct uverbs_attr_bundle *attrs);
struct ib_mr *qhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 virt, int access,
				 struct ib_pd *pd, struct ib_udata *udata);
int qhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
struct ib_mr *qhca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs);
int qhca_check_access(struct qhca_ib_dev *dev, int access);
struct qhca_mr *qhca_mr_alloc(struct qhca_ib_dev *dev, int access);
void qhca_mr_free(struct qhca_ib_dev *dev, struct qhca_mr *mr);

/* mr_kernel.c */
struct ib_mr *qhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *qhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			    u32 max_num_sg);
int qhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset);
void qhca_page_list_free(struct qhca_ib_dev *dev, struct qhca_mr *mr);

/* pool.c */
void qhca_pool_create(struct qhca_ib_dev *dev);
void qhca_pool_destroy(struct qhca_ib_dev *dev);

/* pool_buf.c */
extern const struct uapi_definition qhca_pool_defs[];
void qhca_pool_buf_free(struct qhca_ib_dev *dev, struct qhca_pool_buf *buf);
struct qhca_pool_buf *qhca_pool_get(struct ib_pd *ibpd, u64 start, u64 length,
				    int access, u64 *offset);
void qhca_pool_put(struct qhca_pool_buf *buf);

/* dm.c */
extern const struct uapi_definition qhca_dm_defs[];
void qhca_dms_create(struct qhca_ib_dev *dev);
void qhca_dms_destroy(struct qhca_ib_dev *dev);
void qhca_dm_buf_free(struct qhca_ib_dev *dev, struct qhca_dm_buf *buf);
struct ib_dm *qhca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs);
int qhca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);

/* mw.c */
int qhca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int qhca_dealloc_mw(struct ib_mw *ibmw);

#endif /* QHCA_MEM_H */
