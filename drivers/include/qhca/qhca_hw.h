/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * qhca hardware ABI: everything the device and its software agree upon.
 *
 * Included, never copied, by the device engine, the kernel drivers and the
 * rdma-core provider.  Pure layout: how it maps to the verbs API is kept
 * elsewhere.  Documentation/hardware.rst is the prose of this file and cites
 * the same names.
 *
 * Conventions
 *  - All multi-byte fields are little-endian unless typed __be*.
 *  - Fields inside a word are masks, never C bitfields; take them apart with
 *    QHCA_GET() and put them together with QHCA_PUT().
 *  - "bus address" is an address as the function issues it on PCIe: machine
 *    physical for GVMI 0, stage-2 translated for any other GVMI.
 *  - Reserved fields are written as zero and ignored when read.
 *  - Indices called free-running count up modulo 2^32; the ring slot is the
 *    index modulo the (power of two) depth.
 */
#ifndef QHCA_HW_H
#define QHCA_HW_H

#ifdef QHCA_HW_PLAIN_TYPES	/* a host without <linux/types.h> */
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __le16;
typedef uint32_t __le32;
typedef uint64_t __le64;
#else
#include <linux/types.h>
#endif

#define QHCA_GET(mask, word)	(((word) & (mask)) / ((mask) & (~(mask) + 1)))
#define QHCA_PUT(mask, value)	(((value) * ((mask) & (~(mask) + 1))) & (mask))

#define QHCA_ASSERT_SIZE(type, size) \
	_Static_assert(sizeof(type) == (size), #type " is not " #size " bytes")

/* ------------------------------------------------------------------------
 * PCI function
 */
#define QHCA_PCI_VENDOR_ID		0x1af4
#define QHCA_PCI_DEVICE_ID		0x10f0	/* experimental range */
#define QHCA_PCI_VF_DEVICE_ID		0x10f1	/* virtual functions */
#define QHCA_PCI_REVISION		1
#define QHCA_BAR_REGS			0	/* registers and MSI-X */
#define QHCA_BAR_DOORBELLS		2	/* one page per user context */
#define QHCA_BAR_DEVMEM			4	/* on-chip device memory */
#define QHCA_BAR_REGS_SIZE		0x10000
#define QHCA_MSIX_TABLE_OFFSET		0x8000
#define QHCA_MSIX_PBA_OFFSET		0xc000
#define QHCA_MAX_VECTORS		64
#define QHCA_MAX_VFS			63	/* GVMI 1 to 63 */

/* ------------------------------------------------------------------------
 * Registers: BAR 0, 32-bit aligned accesses
 */
#define QHCA_REG_MAGIC			0x000	/* RO QHCA_MAGIC */
#define QHCA_REG_VERSION		0x004	/* RO ABI major << 16 | minor */
#define QHCA_REG_STATUS			0x008	/* RO QHCA_STATUS_* */
#define QHCA_REG_CONTROL		0x00c	/* RW QHCA_CONTROL_* */
#define QHCA_REG_GVMI			0x010	/* RO this function's GVMI */
#define QHCA_REG_CMDQ_LOG_SLOTS		0x014	/* RW log2 of command slots */
#define QHCA_REG_CMDQ_BASE_LO		0x018	/* RW bus address of slot 0, */
#define QHCA_REG_CMDQ_BASE_HI		0x01c	/*    4096-byte aligned */
#define QHCA_REG_CMDQ_DOORBELL		0x020	/* WO one bit per slot to run */
#define QHCA_REG_FATAL_INFO		0x024	/* RO detail of a fatal error */
#define QHCA_REG_MAC_LO			0x028	/* RO permanent MAC, octets 0-3 */
#define QHCA_REG_MAC_HI			0x02c	/* RO permanent MAC, octets 4-5 */
#define QHCA_REG_CLOCK_LO		0x030	/* RO ns since reset; reading LO */
#define QHCA_REG_CLOCK_HI		0x034	/*    latches HI */
#define QHCA_REG_LINK			0x038	/* RO QHCA_LINK_* */
#define QHCA_REG_END			0x040

#define QHCA_MAGIC			0x41434851u	/* "QHCA" */
#define QHCA_ABI_MAJOR			1
#define QHCA_ABI_MINOR			0

#define QHCA_STATUS_READY		0x00000001u	/* reset is finished */
#define QHCA_STATUS_ENABLED		0x00000002u	/* command queue runs */
#define QHCA_STATUS_FATAL		0x00000004u	/* dead until reset */
#define QHCA_STATUS_FATAL_CAUSE		0x0000ff00u	/* enum qhca_fatal */

#define QHCA_CONTROL_ENABLE		0x00000001u
#define QHCA_CONTROL_RESET		0x00000002u	/* self-clearing */

#define QHCA_LINK_UP			0x00000001u
#define QHCA_LINK_SPEED			0x00ffff00u	/* units of 100 Mb/s */

#define QHCA_MAX_LOG_CMD_SLOTS		5

enum qhca_fatal {
	QHCA_FATAL_NONE		= 0,
	QHCA_FATAL_CMDQ_DMA	= 1,	/* command slot unreachable */
	QHCA_FATAL_CMDQ_CONFIG	= 2,	/* enabled with a bad base or size */
	QHCA_FATAL_TABLE_DMA	= 3,	/* a context table is unreachable */
	QHCA_FATAL_CONTEXT	= 4,	/* a context in memory is corrupt */
	QHCA_FATAL_EQ_DMA	= 5,	/* an event queue is unreachable */
	QHCA_FATAL_INTERNAL	= 6,
	QHCA_FATAL_INJECTED	= 7,	/* asked for by the host (tests) */
	QHCA_FATAL_STAGE2	= 8,	/* enum qhca_fatal_stage2 */
};

/* FATAL_INFO of QHCA_FATAL_STAGE2 */
enum qhca_fatal_stage2 {
	QHCA_STAGE2_REPLACED	= 1,	/* the host domain sent SET_GVM */
	QHCA_STAGE2_NOT_PINNED	= 2,	/* memory that the device itself needs */
	QHCA_STAGE2_REFUSED	= 3,	/* no memory for the command slots */
	QHCA_STAGE2_LOST	= 4,	/* the host domain has gone */
	QHCA_STAGE2_TABLE	= 5,	/* a PA2MA node cannot be read */
};

/* ------------------------------------------------------------------------
 * Doorbell pages: BAR 2.  Aligned 64-bit writes only; reads give zero.
 * Page 0 is the kernel's.  A doorbell rung through a page other than the one
 * its queue was created with is ignored and counted.
 */
#define QHCA_DB_PAGE_SIZE		4096
#define QHCA_DB_SQ			0x00	/* QPN | sq_pi << 32 */
#define QHCA_DB_CQ_ARM			0x08	/* QHCA_DB_CQ_*, ci << 32 */
#define QHCA_DB_EQ_ARM			0x10	/* page 0: EQN | ci << 32 */
#define QHCA_DB_ETH_TX			0x18	/* page 0: queue | tx_pi << 32 */
#define QHCA_DB_ETH_ARM			0x20	/* page 0: QHCA_DB_ETH_ARM_* */
#define QHCA_DB_POLL			0x28	/* CQN | QHCA_DB_POLL_* | ci << 32 */

#define QHCA_DB_NUMBER			0x00ffffffu
#define QHCA_DB_CQ_SOLICITED		0x01000000u	/* else: next completion */
#define QHCA_DB_POLL_MORE		0x01000000u	/* and after a completion */
#define QHCA_DB_POLL_STREAM		0x02000000u	/* last completion is in a stream */
/* high half of QHCA_DB_ETH_ARM: what software has consumed so far */
#define QHCA_DB_ETH_ARM_RX		0x0000ffffu	/* rx completions, low 16 */
#define QHCA_DB_ETH_ARM_TX		0xffff0000u	/* tx_ci, low 16 */

/* ------------------------------------------------------------------------
 * Commands
 *
 * The command queue is 2^log_slots slots of 64 bytes.  Software fills a slot
 * whose OWN bit is clear, sets OWN last, and writes the slot's bit to
 * QHCA_REG_CMDQ_DOORBELL.  The device copies the slot once, executes it, writes
 * the output mailbox, then out_param, and last the status word with OWN clear;
 * if QHCA_CMD_F_EVENT was set it also posts an event to EQ 0.
 */
struct qhca_cmd_slot {
	__le16	opcode;		/* enum qhca_opcode */
	__le16	token;		/* software's, returned in the event */
	__le32	flags;		/* QHCA_CMD_F_* */
	__le32	index;		/* object number: QPN, CQN, key index... */
	__le32	param;		/* per command */
	__le64	in_addr;	/* input mailbox, bus address, 64-byte aligned */
	__le64	out_addr;	/* output mailbox */
	__le32	in_len;		/* bytes, at most QHCA_MAILBOX_SIZE */
	__le32	out_len;
	__le64	out_param;	/* written by the device */
	__le32	rsvd[2];
	__le32	syndrome;	/* written by the device: detail of a failure */
	__le32	status;		/* QHCA_CMD_STATUS, QHCA_CMD_OWN; written last */
};

QHCA_ASSERT_SIZE(struct qhca_cmd_slot, 64);

#define QHCA_CMD_F_EVENT		0x00000001u
#define QHCA_CMD_STATUS			0x000000ffu	/* enum qhca_cmd_status */
#define QHCA_CMD_OWN			0x80000000u	/* the device's */
#define QHCA_MAILBOX_SIZE		4096

enum qhca_opcode {
	QHCA_CMD_NOP			= 0x00,
	QHCA_CMD_QUERY_CAPS		= 0x01,	/* out: qhca_caps */
	QHCA_CMD_INIT_HCA		= 0x02,	/* in: qhca_init_hca */
	QHCA_CMD_TEARDOWN_HCA		= 0x03,	/* forget tables and queues */
	/* index: first chunk, param: enum qhca_table | count << 8, in: __le64[] */
	QHCA_CMD_MAP_CHUNKS		= 0x04,
	QHCA_CMD_UNMAP_CHUNKS		= 0x05,	/* index, param: as MAP_CHUNKS */
	QHCA_CMD_QUERY_COUNTERS		= 0x06,	/* index: first counter, out: __le64[] */

	QHCA_CMD_QUERY_PORT		= 0x10,	/* out: qhca_port */
	QHCA_CMD_SET_PORT		= 0x11,	/* in: qhca_port_config */
	QHCA_CMD_SET_GID		= 0x12,	/* index: GID index, in: qhca_gid_entry */
	QHCA_CMD_SET_MCAST		= 0x13,	/* in: qhca_mcast_list (Ethernet filter) */
	QHCA_CMD_CREATE_ETHQ		= 0x14,	/* index: queue, in: qhca_ethq_config */
	QHCA_CMD_DESTROY_ETHQ		= 0x15,	/* index: queue */
	QHCA_CMD_SET_RSS		= 0x16,	/* in: qhca_rss_config */

	QHCA_CMD_CREATE_EQ		= 0x20,	/* index: EQN, in: qhca_eqc_sw */
	QHCA_CMD_DESTROY_EQ		= 0x21,
	QHCA_CMD_QUERY_EQ		= 0x22,	/* out: qhca_eqc */
	QHCA_CMD_CREATE_CQ		= 0x24,	/* index: CQN, in: qhca_cqc_sw */
	QHCA_CMD_DESTROY_CQ		= 0x25,
	QHCA_CMD_QUERY_CQ		= 0x26,	/* out: qhca_cqc */
	QHCA_CMD_MODIFY_CQ		= 0x27,	/* in: qhca_cqc_sw, param: QHCA_CQ_ATTR_* */
	QHCA_CMD_CREATE_SRQ		= 0x28,	/* index: SRQN, in: qhca_srqc_sw */
	QHCA_CMD_DESTROY_SRQ		= 0x29,
	QHCA_CMD_QUERY_SRQ		= 0x2a,	/* out: qhca_srqc */
	QHCA_CMD_MODIFY_SRQ		= 0x2b,	/* param: new limit */
	QHCA_CMD_CREATE_QP		= 0x2c,	/* index: QPN, in: qhca_qpc_sw */
	QHCA_CMD_DESTROY_QP		= 0x2d,
	QHCA_CMD_QUERY_QP		= 0x2e,	/* out: qhca_query_qp */
	QHCA_CMD_MODIFY_QP		= 0x2f,	/* in: qhca_modify_qp */
	QHCA_CMD_ATTACH_MCAST		= 0x30,	/* index: QPN, in: qhca_mgid */
	QHCA_CMD_DETACH_MCAST		= 0x31,
	QHCA_CMD_RESIZE_SRQ		= 0x32,	/* index: SRQN, in: qhca_srqc_sw */
	QHCA_CMD_CREATE_FLOW		= 0x33,	/* index: rule, in: qhca_flow */
	QHCA_CMD_DESTROY_FLOW		= 0x34,	/* index: rule */
	QHCA_CMD_SET_QP_COUNTERS	= 0x35,	/* index: QPN, param: counter set */
	/* index: counter set, param: first counter, out: __le64[] */
	QHCA_CMD_QUERY_COUNTER_SET	= 0x36,

	QHCA_CMD_INVALIDATE_KEY		= 0x40,	/* index: key index, param: QHCA_INVAL_* */
	QHCA_CMD_INVALIDATE_RANGE	= 0x41,	/* index: key index, in: qhca_range */
	QHCA_CMD_INVALIDATE_ALL		= 0x42,	/* param: QHCA_INVAL_* */
	QHCA_CMD_MAP_POOL_BLOCK		= 0x44,	/* index: block, in: qhca_pool_row */
	QHCA_CMD_UNMAP_POOL_BLOCK	= 0x45,
	QHCA_CMD_MAP_POOL_KEY		= 0x46,	/* index: key index */
	QHCA_CMD_FAULT_RESUME		= 0x48,	/* index: token, param: QHCA_RESUME_* */
	QHCA_CMD_SET_CLOCK		= 0x49,	/* reserved: clock discipline */

	/* 0x80-0x9f: virtual functions and stage-2 tables (host domain only) */
	QHCA_CMD_SET_GVM		= 0x80,	/* index: GVMI, in: qhca_gvm_entry */
	QHCA_CMD_INVALIDATE_STAGE2	= 0x81,	/* index: GVMI, in: qhca_range */
	QHCA_CMD_SET_VF			= 0x82,	/* index: GVMI, in: qhca_vf_config */
	QHCA_CMD_QUERY_VF		= 0x83,	/* index: GVMI, out: qhca_vf_state */
	/* index: GVMI, param: first counter, out: __le64[] */
	QHCA_CMD_QUERY_VF_COUNTERS	= 0x84,
	/* index: token, param: QHCA_RESUME_* | GVMI << 16 */
	QHCA_CMD_STAGE2_RESUME		= 0x85,
	/* 0xa0-0xaf: migration */
};

enum qhca_cmd_status {
	QHCA_CMD_OK		= 0x00,
	QHCA_CMD_BAD_OPCODE	= 0x01,
	QHCA_CMD_BAD_PARAM	= 0x02,	/* a field is out of its range */
	QHCA_CMD_BAD_INDEX	= 0x03,	/* object number out of range */
	QHCA_CMD_BAD_STATE	= 0x04,	/* object or HCA is in another state */
	QHCA_CMD_BAD_LEN	= 0x05,	/* mailbox too short or too long */
	QHCA_CMD_NOT_MAPPED	= 0x06,	/* its table chunk is not mapped */
	QHCA_CMD_IN_USE		= 0x07,	/* index taken, or object still referenced */
	QHCA_CMD_DMA_ERR	= 0x08,
	QHCA_CMD_NO_RESOURCE	= 0x09,	/* a bounded on-chip resource is full */
	QHCA_CMD_UNSUPPORTED	= 0x0a,
	QHCA_CMD_NOT_INIT	= 0x0b,	/* needs INIT_HCA first */
	QHCA_CMD_NOT_PERMITTED	= 0x0c,	/* host domain only */
	QHCA_CMD_INTERNAL	= 0x0d,
};

#define QHCA_INVAL_PT			0x1u	/* protection cache line(s) */
#define QHCA_INVAL_AT			0x2u	/* translation cache line(s) */

/* QHCA_CMD_FAULT_RESUME and QHCA_CMD_STAGE2_RESUME parameter */
#define QHCA_RESUME_OK			0x0u	/* the page is present: go on */
#define QHCA_RESUME_FAIL		0x1u	/* no such mapping: access error */
#define QHCA_RESUME_GVMI		0xffff0000u /* STAGE2_RESUME: whose */

/*
 * A byte range inside a region, relative to its start (addresses for an implicit
 * region); for INVALIDATE_STAGE2 a range of the function's bus addresses.
 */
struct qhca_range {
	__le64	start;
	__le64	length;
};

QHCA_ASSERT_SIZE(struct qhca_range, 16);

/* ------------------------------------------------------------------------
 * Capabilities and initialisation
 */
enum qhca_cache_id {
	QHCA_CACHE_PT	= 0,	/* protection cache */
	QHCA_CACHE_AT	= 1,	/* address translation cache */
	QHCA_CACHE_QD	= 2,	/* queue descriptor cache: QP contexts */
	QHCA_CACHE_CQ	= 3,	/* queue descriptor cache: CQ contexts */
	QHCA_CACHE_SRQ	= 4,	/* queue descriptor cache: SRQ contexts */
	QHCA_NUM_CACHES	= 5,	/* in the arrays of qhca_caps and qhca_init_hca */
	QHCA_CACHE_S2	= 5,	/* stage-2 translations; has fields of its own there */
	QHCA_NUM_CACHE_IDS = 6,
};

/* A cache is `blocks` groups of `sets` sets; both powers of two. */
struct qhca_cache_geometry {
	__le16	sets;
	__le16	blocks;
};

QHCA_ASSERT_SIZE(struct qhca_cache_geometry, 4);

enum qhca_table {
	QHCA_TABLE_PT	= 0,	/* qhca_pte */
	QHCA_TABLE_QP	= 1,	/* qhca_qpc */
	QHCA_TABLE_CQ	= 2,	/* qhca_cqc */
	QHCA_TABLE_SRQ	= 3,	/* qhca_srqc */
	QHCA_TABLE_EQ	= 4,	/* qhca_eqc */
	QHCA_NUM_TABLES	= 5,
};

#define QHCA_MAX_CHUNKS			512	/* chunk registers a table */
#define QHCA_MIN_LOG_CHUNK		12
#define QHCA_MAX_LOG_CHUNK		22

/* Feature bits, qhca_caps.features */
#define QHCA_FEAT_RC			0x0000000000000001ull
#define QHCA_FEAT_UC			0x0000000000000002ull
#define QHCA_FEAT_UD			0x0000000000000004ull
#define QHCA_FEAT_ATOMIC		0x0000000000000008ull
#define QHCA_FEAT_SRQ			0x0000000000000010ull
#define QHCA_FEAT_XRC			0x0000000000000020ull
#define QHCA_FEAT_MW1			0x0000000000000040ull
#define QHCA_FEAT_MW2B			0x0000000000000080ull
#define QHCA_FEAT_FAST_REG		0x0000000000000100ull
#define QHCA_FEAT_RESERVED_LKEY		0x0000000000000200ull
#define QHCA_FEAT_POOL			0x0000000000000400ull
#define QHCA_FEAT_DEVMEM		0x0000000000000800ull
#define QHCA_FEAT_CQ_MODERATION		0x0000000000001000ull
#define QHCA_FEAT_CQ_RESIZE		0x0000000000002000ull
#define QHCA_FEAT_ATOMIC_WRITE		0x0000000000004000ull
#define QHCA_FEAT_FLUSH			0x0000000000008000ull
#define QHCA_FEAT_ODP			0x0000000000010000ull
#define QHCA_FEAT_ODP_IMPLICIT		0x0000000000020000ull
#define QHCA_FEAT_UNSOLICITED_ACK	0x0000000000040000ull
#define QHCA_FEAT_MCAST			0x0000000000080000ull
#define QHCA_FEAT_ETH_CSUM		0x0000000000100000ull
#define QHCA_FEAT_ETH_TSO		0x0000000000200000ull
#define QHCA_FEAT_STRICT_LKEY		0x0000000000400000ull
#define QHCA_FEAT_SRQ_RESIZE		0x0000000000800000ull
#define QHCA_FEAT_RAW_PACKET		0x0000000001000000ull
#define QHCA_FEAT_VF			0x0000000002000000ull	/* host domain */
#define QHCA_FEAT_STAGE2		0x0000000004000000ull	/* host domain */
#define QHCA_FEAT_NULL_LKEY		0x0000000008000000ull
#define QHCA_FEAT_QP_COUNTERS		0x0000000010000000ull
#define QHCA_FEAT_ETH_RSS		0x0000000020000000ull
#define QHCA_FEAT_POLL_HINT		0x0000000040000000ull
#define QHCA_FEAT_STREAM_HINT		0x0000000080000000ull

struct qhca_caps {
	__le64	features;
	__le64	max_mr_size;		/* bytes */
	__le64	page_sizes;		/* bit n: pages of 2^n bytes */
	__le64	devmem_size;		/* bytes in BAR 4 */
	__u8	log_max_pt;		/* entries, also bounds the key index */
	__u8	log_max_qp;
	__u8	log_max_cq;
	__u8	log_max_srq;
	__u8	log_max_eq;
	__u8	log_max_wq_depth;	/* WQEs in an SQ, RQ or SRQ */
	__u8	log_max_cq_depth;
	__u8	log_max_eq_depth;
	__u8	log_max_wqe_stride;	/* bytes, send queue */
	__u8	log_max_rwqe_stride;	/* bytes, receive queue */
	__u8	log_max_eth_ring;
	__u8	max_eth_queues;
	__u8	max_mtu;		/* enum qhca_mtu */
	__u8	max_rd_atomic;		/* responder resources a QP, both ways */
	__u8	num_vectors;		/* MSI-X vectors, low 8 bits */
	__u8	num_ports;
	__le16	max_sge;		/* send and receive */
	__le16	max_inline;		/* bytes */
	__le16	max_gids;
	__le16	max_mcast_members;	/* on-chip multicast table rows */
	__le32	num_db_pages;
	__le32	num_counters;
	__le16	max_pool_blocks;
	__le16	max_eth_mtu;
	__le32	max_msg_size_log;	/* 31 */
	struct qhca_cache_geometry cache_max[QHCA_NUM_CACHES];
	struct qhca_cache_geometry cache_default[QHCA_NUM_CACHES];
	__le32	first_user_qpn;		/* QPNs below it are special */
	__le32	reserved_lkey;		/* QHCA_RESERVED_LKEY */
	__le64	clock_hz;		/* of CQE timestamps and CLOCK */
	__le16	max_pool_keys;		/* keys in the pool bank */
	__le16	max_flows;		/* flow rules */
	__le16	total_vfs;		/* GVMIs 1 to total_vfs exist */
	__le16	num_counter_sets;	/* set 0 included */
	struct qhca_cache_geometry s2_max;	/* of QHCA_CACHE_S2 */
	struct qhca_cache_geometry s2_default;
	__le32	rsvd[20];
};

QHCA_ASSERT_SIZE(struct qhca_caps, 224);

struct qhca_init_table {
	__u8	log_entries;
	__u8	log_chunk;		/* bytes a chunk; QHCA_MAX_CHUNKS at most */
	__u8	rsvd[6];
};

QHCA_ASSERT_SIZE(struct qhca_init_table, 8);

struct qhca_init_hca {
	struct qhca_init_table table[QHCA_NUM_TABLES];
	struct qhca_cache_geometry cache[QHCA_NUM_CACHES]; /* 0 x 0: default */
	__le32	flags;			/* QHCA_INIT_* */
	struct qhca_cache_geometry s2;	/* of QHCA_CACHE_S2; 0 x 0: default */
	__le32	rsvd0;
	__le64	rsvd[7];
};

QHCA_ASSERT_SIZE(struct qhca_init_hca, 128);

#define QHCA_INIT_STRICT_LKEY	0x1u	/* reserved key on channel operations only */
#define QHCA_INIT_NO_UNSOL_ACK	0x2u	/* never send nor honour unsolicited ACKs */

/* ------------------------------------------------------------------------
 * Port, GIDs, Ethernet
 */
enum qhca_mtu {
	QHCA_MTU_256 = 1, QHCA_MTU_512 = 2, QHCA_MTU_1024 = 3,
	QHCA_MTU_2048 = 4, QHCA_MTU_4096 = 5,
};

struct qhca_port {
	__le32	link;			/* QHCA_LINK_* as in the register */
	__le32	eth_mtu;		/* current, bytes of payload */
	__u8	mac[6];			/* current */
	__le16	rsvd0;
	__le32	qkey_violations;
	__le32	pkey_violations;
	__le32	rsvd[8];
};

QHCA_ASSERT_SIZE(struct qhca_port, 56);

struct qhca_port_config {
	__le32	fields;			/* QHCA_PORT_SET_*: which of these apply */
	__le32	eth_mtu;		/* bytes of payload, 68 to max_eth_mtu */
	__u8	mac[6];
	__le16	rsvd0;
	__le32	rx_flags;		/* QHCA_RX_* */
	__le32	rsvd[3];
};

QHCA_ASSERT_SIZE(struct qhca_port_config, 32);

#define QHCA_PORT_SET_MTU	0x1u
#define QHCA_PORT_SET_MAC	0x2u
#define QHCA_PORT_SET_RX	0x4u
#define QHCA_RX_PROMISC		0x1u
#define QHCA_RX_ALLMULTI	0x2u
#define QHCA_RX_ENABLE		0x4u	/* deliver to Ethernet queues at all */

/* What the host domain lays down for a virtual function. */
struct qhca_vf_config {
	__le32	fields;			/* QHCA_VF_SET_*: which of these apply */
	__u8	mac[6];			/* zero: the function's own choice */
	__le16	vlan;			/* tag of all its frames: 1 to 4094; 0: none */
	__u8	qos;			/* priority in that tag, 0 to 7 */
	__u8	link;			/* enum qhca_vf_link */
	__le16	flags;			/* QHCA_VF_* */
	__le32	max_rate;		/* Mb/s; 0: no limit */
	__le32	min_rate;		/* Mb/s; 0: none guaranteed */
	__le32	rsvd0;
	/*
	 * Blocks of each cache that the function may fill, by enum
	 * qhca_cache_id; 0: all of them.
	 */
	__le16	blocks[8];
	__le32	rsvd[5];
};

QHCA_ASSERT_SIZE(struct qhca_vf_config, 64);

#define QHCA_VF_SET_MAC		0x01u
#define QHCA_VF_SET_VLAN	0x02u	/* vlan and qos */
#define QHCA_VF_SET_LINK	0x04u
#define QHCA_VF_SET_SPOOFCHK	0x08u
#define QHCA_VF_SET_TRUST	0x10u
#define QHCA_VF_SET_RATE	0x20u	/* max_rate and min_rate */
#define QHCA_VF_SET_BLOCKS	0x40u
#define QHCA_VF_SPOOFCHK	0x1u	/* check what it sends as its source */
#define QHCA_VF_TRUST		0x2u	/* may be promiscuous, and change its MAC */

enum qhca_vf_link {
	QHCA_VF_LINK_AUTO	= 0,	/* as the port's */
	QHCA_VF_LINK_UP		= 1,	/* even if the port's is down */
	QHCA_VF_LINK_DOWN	= 2,
};

struct qhca_vf_state {
	struct qhca_vf_config config;	/* with fields 0 */
	__le32	status;			/* the function's QHCA_REG_STATUS */
	__le32	link;			/* QHCA_LINK_*: as the function sees it */
	__u8	mac[6];			/* current */
	__le16	rsvd0;
	__le32	generation;		/* counts resets of the function */
	__le32	rsvd[11];
};

QHCA_ASSERT_SIZE(struct qhca_vf_state, 128);

#define QHCA_MAX_ETH_MCAST	64
struct qhca_mcast_list {
	__le32	count;
	__le32	rsvd;
	struct { __u8 mac[6]; __u8 rsvd[2]; } entry[QHCA_MAX_ETH_MCAST];
};

QHCA_ASSERT_SIZE(struct qhca_mcast_list, 8 + 8 * QHCA_MAX_ETH_MCAST);

/* Which of several Ethernet queues gets a frame. */
#define QHCA_RSS_KEY_LEN	40
#define QHCA_RSS_MAX_ENTRIES	128
struct qhca_rss_config {
	__le16	num_entries;		/* in use, a power of two; 0: RSS is off */
	__le16	types;			/* QHCA_RSS_*: which frames have a hash */
	__le32	rsvd0;
	__u8	key[QHCA_RSS_KEY_LEN];	/* of the Toeplitz hash */
	__u8	rsvd1[16];
	__u8	queue[QHCA_RSS_MAX_ENTRIES];
};

QHCA_ASSERT_SIZE(struct qhca_rss_config, 192);

/* By addresses alone, or by addresses and ports. */
#define QHCA_RSS_IPV4		0x01u
#define QHCA_RSS_TCP_IPV4	0x02u
#define QHCA_RSS_UDP_IPV4	0x04u
#define QHCA_RSS_IPV6		0x08u
#define QHCA_RSS_TCP_IPV6	0x10u
#define QHCA_RSS_UDP_IPV6	0x20u
#define QHCA_RSS_TYPES		0x3fu

struct qhca_gid_entry {
	__u8	gid[16];		/* network order; IPv4 as ::ffff:a.b.c.d */
	__u8	smac[6];
	__le16	vlan;			/* QHCA_GID_NO_VLAN, or VLAN id */
	__le32	flags;			/* QHCA_GID_* */
	__le32	rsvd;
};

QHCA_ASSERT_SIZE(struct qhca_gid_entry, 32);

#define QHCA_GID_NO_VLAN	0xffffu
#define QHCA_GID_VALID		0x1u
#define QHCA_GID_IPV4		0x2u

struct qhca_mgid {
	__u8	gid[16];
};

QHCA_ASSERT_SIZE(struct qhca_mgid, 16);

/*
 * Flow rules: which Ethernet frames a raw packet QP receives.  Fields are as on
 * the wire; those that a frame has not are zero.
 */
struct qhca_flow_key {
	__u8	dmac[6];
	__u8	smac[6];
	__u8	ethertype[2];		/* behind the VLAN tag, if there is one */
	__u8	vlan[2];		/* tag control */
	__u8	src_ip[16];		/* IPv4: the first 4 octets */
	__u8	dst_ip[16];
	__u8	flow_label[4];		/* IPv6: low 20 bits */
	__u8	proto;			/* or next header */
	__u8	tos;			/* or traffic class */
	__u8	ttl;			/* or hop limit */
	__u8	rsvd0;
	__u8	sport[2];		/* UDP, TCP */
	__u8	dport[2];
	__u8	rsvd1[4];
};

QHCA_ASSERT_SIZE(struct qhca_flow_key, 64);

struct qhca_flow {
	__le32	qpn;
	__le16	priority;		/* the lowest is asked first */
	__u8	type;			/* enum qhca_flow_type */
	__u8	layers;			/* QHCA_FLOW_*: what the frame must have */
	__u8	flags;			/* QHCA_FLOW_F_* */
	__u8	rsvd[7];
	struct qhca_flow_key key;
	struct qhca_flow_key mask;	/* bits of the key that count */
};

QHCA_ASSERT_SIZE(struct qhca_flow, 144);

/* Numbered as the verbs' flow attribute types. */
enum qhca_flow_type {
	QHCA_FLOW_NORMAL	= 0,	/* frames that match, before Ethernet queues */
	QHCA_FLOW_ALL_DEFAULT	= 1,	/* what nobody else takes */
	QHCA_FLOW_MC_DEFAULT	= 2,	/* of that, multicast */
	QHCA_FLOW_SNIFFER	= 3,	/* copies of all frames received */
	QHCA_FLOW_NUM_TYPES	= 4,
};

#define QHCA_FLOW_VLAN		0x01u
#define QHCA_FLOW_IPV4		0x02u
#define QHCA_FLOW_IPV6		0x04u
#define QHCA_FLOW_UDP		0x08u
#define QHCA_FLOW_TCP		0x10u
#define QHCA_FLOW_LAYERS	0x1fu
#define QHCA_FLOW_F_DONT_TRAP	0x01u	/* others may have the frame too */

/*
 * An Ethernet queue: transmit ring, receive ring, receive completion ring and
 * a record, each physically contiguous and aligned to 64 bytes.
 */
struct qhca_ethq_config {
	__le64	tx_base;		/* qhca_eth_txd[2^log_tx] */
	__le64	rx_base;		/* qhca_eth_rxd[2^log_rx] */
	__le64	rxc_base;		/* qhca_eth_rxc[2^log_rx] */
	__le64	rec_base;		/* qhca_eth_record */
	__u8	log_tx;
	__u8	log_rx;
	__le16	vector;			/* MSI-X vector */
	__le32	rsvd[7];
};

QHCA_ASSERT_SIZE(struct qhca_ethq_config, 64);

/* One fragment of a frame to send. */
struct qhca_eth_txd {
	__le64	addr;
	__le32	len;
	__le16	flags;			/* QHCA_TXD_* */
	__le16	vlan;			/* tag to insert, with QHCA_TXD_VLAN */
	__le16	csum_start;		/* from the frame's first byte */
	__le16	csum_offset;		/* of the field, from csum_start */
	__le16	mss;			/* with QHCA_TXD_TSO */
	__le16	hdr_len;		/* with QHCA_TXD_TSO */
	__le32	rsvd[2];
};

QHCA_ASSERT_SIZE(struct qhca_eth_txd, 32);

/* Frame-wide flags and fields are taken from a frame's first descriptor. */
#define QHCA_TXD_EOP		0x0001u	/* last fragment of the frame */
#define QHCA_TXD_CSUM		0x0002u	/* complete an Internet checksum */
#define QHCA_TXD_VLAN		0x0004u
#define QHCA_TXD_TSO		0x0008u
#define QHCA_MAX_TX_FRAGS	20
/* A frame with QHCA_TXD_TSO, before it is segmented. */
#define QHCA_MAX_TSO_FRAME	(65536 + 18)
#define QHCA_MAX_TSO_HDR	256	/* hdr_len */
#define QHCA_MIN_TSO_MSS	8

struct qhca_eth_rxd {
	__le64	addr;
	__le32	len;			/* one frame a buffer */
	__le32	rsvd;
};

QHCA_ASSERT_SIZE(struct qhca_eth_rxd, 16);

struct qhca_eth_rxc {
	__le32	len;			/* bytes of the frame, no FCS */
	__le16	index;			/* slot of the descriptor it used */
	__le16	vlan;
	__le32	hash;			/* with QHCA_RXC_HASH */
	__le32	flags;			/* QHCA_RXC_*; written last */
};

QHCA_ASSERT_SIZE(struct qhca_eth_rxc, 16);

#define QHCA_RXC_CSUM_OK	0x00000001u	/* L4 checksum verified */
#define QHCA_RXC_TRUNC		0x00000002u	/* frame was larger than the buffer */
#define QHCA_RXC_HASH		0x00000004u	/* there is a hash */
#define QHCA_RXC_HASH_L4	0x00000008u	/* ... with the ports */
#define QHCA_RXC_PHASE		0x80000000u	/* 1 on the first pass of the ring */

struct qhca_eth_record {
	__le32	rx_pi;			/* software: receive buffers posted */
	__le32	rsvd0[15];
	__le32	tx_ci;			/* device: transmit descriptors done */
	__le32	rsvd1[15];
};

QHCA_ASSERT_SIZE(struct qhca_eth_record, 128);

/* ------------------------------------------------------------------------
 * Memory: protection table and address translation (seed 000)
 */
#define QHCA_KEY_INDEX(key)	((key) >> 8)
#define QHCA_KEY_OCTET(key)	((key) & 0xffu)
#define QHCA_MAX_LOG_PT		24

/*
 * Key index 0 is never valid (it catches a forgotten key).  Key index 1 has
 * the reserved L_Key and the null L_Key: no lookup, no fill (seed 001).
 */
#define QHCA_RESERVED_LKEY	0x00000100u
#define QHCA_NULL_LKEY		0x00000101u
#define QHCA_FIRST_KEY_INDEX	2

struct qhca_pte {
	__le32	ctrl;			/* QHCA_PTE_* */
	__le32	access;			/* QHCA_ACCESS_* */
	__le32	pd;
	__le32	at_key;			/* tags its AT lines; a window: its region's */
	__le64	start;			/* first valid address, 0 if zero-based */
	__le64	length;			/* bytes */
	/*
	 * AT root node, 64-byte aligned; with 0 levels the bus address itself
	 * (DEVMEM: offset in BAR 4; POOL and windows on it: offset in block).
	 */
	__le64	at_base;
	__le64	at_offset;		/* where in the translated space `start` is */
	__le32	qpn;			/* window type 2B: its QP */
	__le32	gvmi;			/* must be the function's own */
	__le32	windows;		/* device's: windows bound to this region */
	__le32	pool_block;		/* POOL and windows on it: row in the bank */
};

QHCA_ASSERT_SIZE(struct qhca_pte, 64);

#define QHCA_PTE_STATE		0x0000000fu	/* enum qhca_pte_state */
#define QHCA_PTE_TYPE		0x000000f0u	/* enum qhca_pte_type */
#define QHCA_PTE_OCTET		0x0000ff00u	/* low 8 bits of the key */
#define QHCA_PTE_PAGE_SHIFT	0x003f0000u	/* 12 to 63 */
#define QHCA_PTE_LEVELS		0x07000000u	/* AT levels, 0 to QHCA_MAX_AT_LEVELS */
#define QHCA_PTE_ODP		0x08000000u	/* entries may be not present */
#define QHCA_PTE_REMOTE_INV	0x10000000u	/* send-with-invalidate may end it */
#define QHCA_PTE_POOLED		0x20000000u	/* device's: window on a POOL region */

enum qhca_pte_state {
	QHCA_PTE_FREE		= 0,	/* no such key */
	QHCA_PTE_VALID		= 1,
	/* allocated; unusable until bound or fast-registered (IBTA "free") */
	QHCA_PTE_INVALIDATED	= 2,
};

enum qhca_pte_type {
	QHCA_PTE_MR		= 1,
	QHCA_PTE_FAST_REG	= 2,	/* MR made by REG_MR work requests */
	QHCA_PTE_MW1		= 3,
	QHCA_PTE_MW2B		= 4,
	QHCA_PTE_POOL		= 5,	/* pool-direct (seed 002) */
	QHCA_PTE_DEVMEM		= 6,
	QHCA_PTE_DMA		= 7,	/* kernel: address is a bus address */
};

#define QHCA_ACCESS_LOCAL_WRITE		0x001u
#define QHCA_ACCESS_REMOTE_WRITE	0x002u
#define QHCA_ACCESS_REMOTE_READ		0x004u
#define QHCA_ACCESS_REMOTE_ATOMIC	0x008u
#define QHCA_ACCESS_MW_BIND		0x010u
#define QHCA_ACCESS_ZERO_BASED		0x020u
#define QHCA_ACCESS_FLUSH_GLOBAL	0x100u
#define QHCA_ACCESS_FLUSH_PERSISTENT	0x200u
#define QHCA_ACCESS_MASK		0x33fu

/*
 * Address translation entry.  A node is an array of up to 512 entries; level k
 * (k = levels ... 1) is indexed by (offset >> (page_shift + 9 * (k - 1))) & 511,
 * except that the root's index is not masked and must be below 512.
 * Only the entries that the length needs have to exist.
 */
#define QHCA_ATE_PRESENT	0x0000000000000001ull
#define QHCA_ATE_LEAF		0x0000000000000002ull	/* above level 1: a large page */
#define QHCA_ATE_WRITE		0x0000000000000004ull	/* may be written */
#define QHCA_ATE_PINNED		0x0000000000000008ull	/* stage 2: stays present */
#define QHCA_ATE_ADDR		0xfffffffffffff000ull	/* page; node: QHCA_ATE_NODE */
#define QHCA_ATE_NODE		0xffffffffffffffc0ull
#define QHCA_AT_BITS		9
#define QHCA_MAX_AT_LEVELS	5

struct qhca_pool_row {			/* seed 002: virtual-physical row */
	__le64	addr;			/* bus address, contiguous */
	__le64	length;
	__le64	rsvd[2];
};

QHCA_ASSERT_SIZE(struct qhca_pool_row, 32);

/*
 * A row of the GVM identifier table and of the uplink table (seed 004).  The rows
 * are on the chip; the host domain writes them with SET_GVM.
 */
struct qhca_gvm_entry {
	__le64	at_base;		/* PA2MA: root node, machine address, 64-byte aligned */
	__u8	page_shift;		/* PA2MA: 12, 21 or 30 */
	__u8	levels;			/* PA2MA: 1 to QHCA_MAX_AT_LEVELS */
	__le16	uplink_attr;		/* accompanies each memory request */
	__le32	flags;			/* QHCA_GVM_* */
	__le64	rsvd[2];
};

QHCA_ASSERT_SIZE(struct qhca_gvm_entry, 32);

#define QHCA_GVM_STAGE2		0x1u	/* translate the function's bus addresses */

/* ------------------------------------------------------------------------
 * Queue buffers and records (seed 003)
 *
 * The rings of a queue and its record live in one buffer of its owner,
 * reached through translation nodes of the AT format (levels 0: contiguous).
 * A record's first 64 bytes are the descriptor's software part: only its
 * owner writes them.  Its second 64 bytes are the device's.
 */
struct qhca_buf {
	__le64	base;			/* AT root, or bus address with 0 levels */
	__le32	length;			/* bytes; everything used lies inside */
	__u8	page_shift;
	__u8	levels;
	__le16	rsvd;
};

QHCA_ASSERT_SIZE(struct qhca_buf, 16);

struct qhca_qp_record {
	__le32	sq_pi;			/* free-running: send WQEs posted */
	__le32	rq_pi;			/* free-running: receive WQEs posted */
	__le32	rsvd0[14];
	/* non-zero: device will look at sq_pi again by itself, no doorbell needed */
	__le32	sq_active;
	__le32	rsvd1[15];
};

QHCA_ASSERT_SIZE(struct qhca_qp_record, 128);

struct qhca_cq_record {
	__le32	ci;			/* free-running: CQEs consumed */
	__le32	threshold;		/* from the next refetch on; 0: unchanged */
	__le32	rsvd0[14];
	__le32	armed;			/* device: non-zero while armed */
	__le32	rsvd1[15];
};

QHCA_ASSERT_SIZE(struct qhca_cq_record, 128);

struct qhca_srq_record {
	__le32	pi;			/* free-running: WQEs posted */
	__le32	threshold;		/* from the next refetch on; 0: unchanged */
	__le32	rsvd0[14];
	__le32	rsvd1[16];
};

QHCA_ASSERT_SIZE(struct qhca_srq_record, 128);

struct qhca_eq_record {
	__le32	ci;			/* free-running: EQEs consumed */
	__le32	rsvd0[15];
	__le32	rsvd1[16];
};

QHCA_ASSERT_SIZE(struct qhca_eq_record, 128);

/* ------------------------------------------------------------------------
 * Event queues
 */
struct qhca_eqc_sw {
	struct qhca_buf buf;		/* ring at 0, record at rec_offset */
	__le32	rec_offset;
	__u8	log_depth;
	__u8	rsvd0;
	__le16	vector;			/* MSI-X vector */
	__le32	rsvd[10];
};

QHCA_ASSERT_SIZE(struct qhca_eqc_sw, 64);

struct qhca_eqc {
	struct qhca_eqc_sw sw;
	__le32	state;			/* 0: free, 1: live */
	__le32	pi;			/* free-running: EQEs written */
	__le32	ci;			/* last fetched from the record */
	__le32	armed;
	__le32	overruns;		/* times an event had to be held */
	__le32	rsvd[11];
};

QHCA_ASSERT_SIZE(struct qhca_eqc, 128);

#define QHCA_EQN_ASYNC		0	/* commands, asynchronous events, faults */

enum qhca_event {
	QHCA_EVENT_CMD			= 0x01,	/* number: slot */
	QHCA_EVENT_COMPLETION		= 0x02,	/* number: CQN */
	QHCA_EVENT_CQ_ERROR		= 0x10,	/* number: CQN */
	QHCA_EVENT_QP_FATAL		= 0x11,	/* number: QPN, this and below */
	QHCA_EVENT_QP_REQ_ERROR		= 0x12,
	QHCA_EVENT_QP_ACCESS_ERROR	= 0x13,
	QHCA_EVENT_QP_COMM_EST		= 0x14,
	QHCA_EVENT_QP_SQ_DRAINED	= 0x15,
	QHCA_EVENT_QP_LAST_WQE		= 0x16,
	QHCA_EVENT_PATH_MIG		= 0x17,
	QHCA_EVENT_PATH_MIG_ERROR	= 0x18,
	QHCA_EVENT_SRQ_ERROR		= 0x20,	/* number: SRQN */
	QHCA_EVENT_SRQ_LIMIT		= 0x21,
	QHCA_EVENT_PORT_CHANGE		= 0x30,	/* number: port, detail: QHCA_LINK_* */
	QHCA_EVENT_PAGE_FAULT		= 0x40,	/* number: QPN, fault */
	/* host domain; number: GVMI, detail: enum qhca_stage2_want, fault */
	QHCA_EVENT_STAGE2_FAULT		= 0x41,
	QHCA_EVENT_DEVICE_FATAL		= 0x50,
};

struct qhca_fault_info {		/* seed 004 */
	__le32	token;			/* for FAULT_RESUME, STAGE2_RESUME */
	__le32	key;			/* L_Key or R_Key as given; stage 2: 0 */
	__le32	flags;			/* QHCA_FAULT_* */
	__le32	bytes_done;		/* of the message; stage 2: 0 */
	__le64	addr;			/* first address that is not present */
	__le64	length;			/* bytes wanted from there */
};

QHCA_ASSERT_SIZE(struct qhca_fault_info, 32);

#define QHCA_FAULT_WRITE	0x00000001u	/* write access wanted */
#define QHCA_FAULT_REQUESTER	0x00000002u	/* local side of the QP's send queue */
#define QHCA_FAULT_RDMA		0x00000004u	/* key is an R_Key */
#define QHCA_FAULT_STAGE2	0x00000008u	/* to the host domain */
#define QHCA_FAULT_CAUSE	0x000000f0u	/* enum qhca_fault_cause */
#define QHCA_FAULT_GVMI		0xffff0000u	/* whose, with STAGE2 */

enum qhca_fault_cause {
	QHCA_FAULT_GATHER	= 1,	/* requester: source of SEND, WRITE */
	QHCA_FAULT_SCATTER	= 2,	/* requester: READ response, atomic result */
	QHCA_FAULT_RECV		= 3,	/* responder: receive buffer */
	QHCA_FAULT_RDMA_W	= 4,	/* responder: WRITE, ATOMIC WRITE */
	QHCA_FAULT_RDMA_R	= 5,	/* responder: READ */
	QHCA_FAULT_ATOMIC	= 6,	/* responder: CMP_SWAP, FETCH_ADD */
	QHCA_FAULT_ETH_TX	= 7,	/* stage 2: fragment of a frame to send */
	QHCA_FAULT_ETH_RX	= 8,	/* stage 2: Ethernet receive buffer */
	QHCA_FAULT_COMMAND	= 9,	/* stage 2: memory that a command names */
};

/* What the device wants of the host domain: QHCA_EVENT_STAGE2_FAULT, detail. */
enum qhca_stage2_want {
	QHCA_STAGE2_PRESENT	= 0,	/* entries present, and writable with WRITE */
	QHCA_STAGE2_PIN		= 1,	/* the same, and QHCA_ATE_PINNED */
};

struct qhca_eqe {
	__u8	type;			/* enum qhca_event */
	__u8	status;			/* CMD: enum qhca_cmd_status */
	__le16	token;			/* CMD: the slot's token */
	__le32	number;
	__le32	detail;
	__le32	rsvd0;
	struct qhca_fault_info fault;
	__le32	rsvd1[3];
	__le32	phase;			/* QHCA_PHASE; written last */
};

QHCA_ASSERT_SIZE(struct qhca_eqe, 64);

/* In EQE.phase and CQE.flags: 1 on the ring's first pass, then alternating. */
#define QHCA_PHASE		0x80000000u

/* ------------------------------------------------------------------------
 * Completion queues
 */
struct qhca_cqc_sw {
	struct qhca_buf buf;		/* ring at 0, record at rec_offset */
	__le32	rec_offset;
	__le32	eqn;			/* where completion events go */
	__le32	db_page;
	__le32	threshold;		/* occupancy past which ci is refetched */
	__le16	moder_count;		/* completions an event may wait for */
	__le16	moder_usec;
	__u8	log_depth;
	__u8	flags;			/* QHCA_CQ_* */
	__u8	rsvd0[2];
	__le32	rsvd[6];
};

QHCA_ASSERT_SIZE(struct qhca_cqc_sw, 64);

#define QHCA_CQ_IGNORE_OVERRUN	0x01u
#define QHCA_CQ_ATTR_MODERATION	0x1u	/* MODIFY_CQ */
#define QHCA_CQ_ATTR_RESIZE	0x2u

struct qhca_cqc {
	struct qhca_cqc_sw sw;
	__le32	state;			/* 0: free, 1: live, 2: error (overrun) */
	__le32	pi;			/* free-running: CQEs written */
	__le32	ci;			/* last fetched from the record */
	__le32	arm;			/* 0, 1: next, 2: solicited */
	__le32	events;			/* completion events raised */
	__le32	pending;		/* completions held by moderation */
	__le32	rsvd[10];
};

QHCA_ASSERT_SIZE(struct qhca_cqc, 128);

struct qhca_cqe {
	__le64	wr_id;
	__le64	handle;			/* the QP's (XRC receive: the SRQ's) */
	__le64	timestamp;		/* ns, HCA clock */
	__le32	qpn;
	__le32	byte_len;
	/* immediate as on the wire (big-endian), or with QHCA_CQE_INV the key (LE) */
	__le32	imm;
	__le32	src_qpn;		/* UD */
	__le32	wqe;			/* SQ, RQ: free-running; SRQ: slot */
	__le32	syndrome;		/* detail of an error */
	__u8	smac[6];		/* UD */
	__le16	vlan;			/* UD, tag control; 0xffff: none */
	__u8	status;			/* enum qhca_wc_status */
	__u8	opcode;			/* enum qhca_wqe_opcode or QHCA_CQE_RECV* */
	__u8	sl;
	__u8	net_type;		/* UD: 4 or 6, IP version under the GRH */
	__le32	flags;			/* QHCA_CQE_*, QHCA_PHASE; written last */
};

QHCA_ASSERT_SIZE(struct qhca_cqe, 64);

#define QHCA_CQE_REQUESTER	0x00000001u	/* send queue's, else receive */
#define QHCA_CQE_IMM		0x00000002u
#define QHCA_CQE_INV		0x00000004u
#define QHCA_CQE_GRH		0x00000008u
#define QHCA_CQE_SOLICITED	0x00000010u
#define QHCA_CQE_SRQ		0x00000020u	/* wqe is an SRQ slot */
#define QHCA_CQE_XRC		0x00000040u	/* handle is the SRQ's */
#define QHCA_CQE_VLAN		0x00000080u

enum qhca_cqe_opcode {			/* receive side; send side: qhca_wqe_opcode */
	QHCA_CQE_RECV		= 0x80,
	QHCA_CQE_RECV_RDMA_IMM	= 0x81,
	QHCA_CQE_RESIZED	= 0xf0,	/* go on in the new buffer */
};

/* Numbered as the verbs' work completion statuses. */
enum qhca_wc_status {
	QHCA_WC_SUCCESS			= 0,
	QHCA_WC_LOC_LEN_ERR		= 1,
	QHCA_WC_LOC_QP_OP_ERR		= 2,
	QHCA_WC_LOC_PROT_ERR		= 4,
	QHCA_WC_WR_FLUSH_ERR		= 5,
	QHCA_WC_MW_BIND_ERR		= 6,
	QHCA_WC_BAD_RESP_ERR		= 7,
	QHCA_WC_LOC_ACCESS_ERR		= 8,
	QHCA_WC_REM_INV_REQ_ERR		= 9,
	QHCA_WC_REM_ACCESS_ERR		= 10,
	QHCA_WC_REM_OP_ERR		= 11,
	QHCA_WC_RETRY_EXC_ERR		= 12,
	QHCA_WC_RNR_RETRY_EXC_ERR	= 13,
	QHCA_WC_REM_ABORT_ERR		= 16,
	QHCA_WC_FATAL_ERR		= 19,
	QHCA_WC_RESP_TIMEOUT_ERR	= 20,
	QHCA_WC_GENERAL_ERR		= 21,
};

/* ------------------------------------------------------------------------
 * Shared receive queues.  WQE slots form a list through qhca_rq_wqe.next: the
 * device takes slot 0 first, then follows `next`.  Software appends a slot it
 * got back to the list's tail.  The list is never empty: depth is one more
 * than what may be posted.
 */
struct qhca_srqc_sw {
	struct qhca_buf buf;		/* ring at 0, record at rec_offset */
	__le64	handle;			/* returned in XRC completions */
	__le32	rec_offset;
	__le32	pd;
	__le32	cqn;			/* XRC */
	__le32	xrcd;			/* XRC */
	__le32	limit;			/* event when fewer are left; 0: none */
	__le32	threshold;		/* refetch pi when fewer than this remain */
	__u8	log_depth;
	__u8	log_stride;		/* bytes a WQE slot */
	__u8	flags;			/* QHCA_SRQ_* */
	__u8	max_sge;
	__le32	rsvd[3];
};

QHCA_ASSERT_SIZE(struct qhca_srqc_sw, 64);

#define QHCA_SRQ_XRC		0x01u
#define QHCA_SRQ_KERNEL		0x02u	/* the reserved L_Key is allowed */

struct qhca_srqc {
	struct qhca_srqc_sw sw;
	__le32	state;			/* 0: free, 1: live, 2: error */
	__le32	head;			/* next slot to take */
	__le32	taken;			/* free-running: WQEs taken */
	__le32	pi;			/* last fetched from the record */
	__le32	rsvd[12];
};

QHCA_ASSERT_SIZE(struct qhca_srqc, 128);

/* ------------------------------------------------------------------------
 * Queue pairs
 */
enum qhca_qp_type {
	QHCA_QPT_RC = 0, QHCA_QPT_UC = 1, QHCA_QPT_UD = 2, QHCA_QPT_GSI = 3,
	QHCA_QPT_XRC_INI = 4, QHCA_QPT_XRC_TGT = 5, QHCA_QPT_RAW = 6,
};

enum qhca_qp_state {
	QHCA_QPS_RESET = 0, QHCA_QPS_INIT = 1, QHCA_QPS_RTR = 2, QHCA_QPS_RTS = 3,
	QHCA_QPS_SQD = 4, QHCA_QPS_SQE = 5, QHCA_QPS_ERR = 6,
};

/* Address vector: in the QP context for connected QPs, in the WQE for datagrams. */
struct qhca_av {
	__u8	dgid[16];		/* network order */
	__u8	dmac[6];
	__u8	sgid_index;
	__u8	hop_limit;
	__u8	traffic_class;
	__u8	sl;			/* VLAN priority, when the GID has a VLAN */
	__le16	udp_sport;		/* 0: derived from QPNs, 0xc000-0xffff */
	__le32	flow_label;		/* 20 bits */
};

QHCA_ASSERT_SIZE(struct qhca_av, 32);

/* Software part: given by CREATE_QP and MODIFY_QP, never changed by the device. */
struct qhca_qpc_sw {
	struct qhca_buf buf;		/* both rings and the record */
	__le64	handle;			/* returned in completions */
	__le32	sq_offset;		/* bytes into buf; stride-aligned */
	__le32	rq_offset;
	__le32	rec_offset;
	__u8	type;			/* enum qhca_qp_type */
	__u8	state;			/* enum qhca_qp_state wanted */
	__le16	flags;			/* QHCA_QP_* */
	__u8	sq_log_depth;
	__u8	sq_log_stride;
	__u8	rq_log_depth;		/* 0 with QHCA_QP_SRQ or no RQ */
	__u8	rq_log_stride;
	__u8	sq_max_sge;
	__u8	rq_max_sge;
	__le16	max_inline;
	__le32	pd;
	__le32	db_page;
	__le32	send_cqn;
	__le32	recv_cqn;
	__le32	srqn;
	__le32	xrcd;
	__le32	rq_threshold;		/* refetch rq_pi when fewer remain */
	__le32	qkey;
	__le32	dest_qpn;
	__le32	sq_psn;			/* first PSN to send */
	__le32	rq_psn;			/* first PSN to expect */
	__le32	access;			/* QHCA_ACCESS_REMOTE_* this QP accepts */
	__u8	path_mtu;		/* enum qhca_mtu */
	__u8	timeout;		/* local ACK timeout, 4.096 us << n, 0: none */
	__u8	retry_cnt;		/* 0 to 7 */
	__u8	rnr_retry;		/* 0 to 7, 7: for ever */
	__u8	min_rnr_timer;		/* IBTA code we ask of the peer */
	__u8	max_rd_atomic;		/* as requester */
	__u8	max_dest_rd_atomic;	/* as responder */
	__u8	pkey_index;
	struct qhca_av av;
	__le32	rsvd[26];
};

QHCA_ASSERT_SIZE(struct qhca_qpc_sw, 240);

#define QHCA_QP_SIG_ALL		0x0001u	/* every send WQE completes */
#define QHCA_QP_KERNEL		0x0002u	/* the reserved L_Key is allowed */
#define QHCA_QP_SRQ		0x0004u
#define QHCA_QP_HAS_RQ		0x0008u
#define QHCA_QP_HAS_SQ		0x0010u
#define QHCA_QP_SQD_EVENT	0x0020u	/* MODIFY to SQD: event when drained */
#define QHCA_QP_MCAST_NO_LOOP	0x0040u

/*
 * As the context lies in memory.  Software provides the room and never reads
 * or writes it while the QP exists; hw is the engine's, laid out in
 * Documentation/hardware.rst.
 */
#define QHCA_QPC_HW_SIZE	784
struct qhca_qpc {
	struct qhca_qpc_sw sw;
	__u8	hw[QHCA_QPC_HW_SIZE];
};

QHCA_ASSERT_SIZE(struct qhca_qpc, 1024);

#define QHCA_QP_ATTR_STATE		0x00000001u
#define QHCA_QP_ATTR_ACCESS		0x00000002u
#define QHCA_QP_ATTR_PKEY_INDEX		0x00000004u
#define QHCA_QP_ATTR_QKEY		0x00000008u
#define QHCA_QP_ATTR_AV			0x00000010u
#define QHCA_QP_ATTR_PATH_MTU		0x00000020u
#define QHCA_QP_ATTR_TIMEOUT		0x00000040u
#define QHCA_QP_ATTR_RETRY_CNT		0x00000080u
#define QHCA_QP_ATTR_RNR_RETRY		0x00000100u
#define QHCA_QP_ATTR_RQ_PSN		0x00000200u
#define QHCA_QP_ATTR_MAX_RD_ATOMIC	0x00000400u
#define QHCA_QP_ATTR_MIN_RNR_TIMER	0x00000800u
#define QHCA_QP_ATTR_SQ_PSN		0x00001000u
#define QHCA_QP_ATTR_MAX_DEST_RD_ATOMIC	0x00002000u
#define QHCA_QP_ATTR_DEST_QPN		0x00004000u
#define QHCA_QP_ATTR_SQD_EVENT		0x00008000u
#define QHCA_QP_ATTR_CUR_STATE		0x00010000u

struct qhca_modify_qp {
	__le32	attr_mask;		/* QHCA_QP_ATTR_* */
	__u8	cur_state;		/* with ATTR_CUR_STATE */
	__u8	rsvd[11];
	struct qhca_qpc_sw ctx;
};

QHCA_ASSERT_SIZE(struct qhca_modify_qp, 256);

struct qhca_query_qp {
	struct qhca_qpc_sw ctx;		/* with the present state */
	__le32	sq_psn;			/* next PSN to send */
	__le32	rq_psn;			/* next PSN expected */
	__u8	sq_draining;
	__u8	rsvd[7];
	__le32	sq_pi;			/* as last seen by the device */
	__le32	sq_ci;			/* send WQEs completed */
	__le32	rq_pi;
	__le32	rq_ci;			/* receive WQEs taken */
	__le32	rsvd2[4];
};

QHCA_ASSERT_SIZE(struct qhca_query_qp, 288);

/* ------------------------------------------------------------------------
 * Send work queue entry.  WQE number i lies at sq_offset +
 * (i mod depth << sq_log_stride): a header of 64 bytes, then num_sge data
 * segments of 16 bytes, or inline_len bytes of data.
 */
enum qhca_wqe_opcode {
	QHCA_WQE_SEND		= 0x00,
	QHCA_WQE_SEND_IMM	= 0x01,
	QHCA_WQE_SEND_INV	= 0x02,
	QHCA_WQE_WRITE		= 0x03,
	QHCA_WQE_WRITE_IMM	= 0x04,
	QHCA_WQE_READ		= 0x05,
	QHCA_WQE_CMP_SWAP	= 0x06,
	QHCA_WQE_FETCH_ADD	= 0x07,
	QHCA_WQE_BIND_MW	= 0x08,
	QHCA_WQE_LOCAL_INV	= 0x09,
	QHCA_WQE_REG_MR		= 0x0a,
	QHCA_WQE_ATOMIC_WRITE	= 0x0b,
	QHCA_WQE_FLUSH		= 0x0c,
	QHCA_WQE_NOP		= 0x0d,
	QHCA_WQE_NUM_OPCODES	= 0x0e,
};

struct qhca_sge {
	__le64	addr;
	__le32	length;
	__le32	lkey;
};

QHCA_ASSERT_SIZE(struct qhca_sge, 16);

struct qhca_wqe_rdma {
	__le64	raddr;
	__le32	rkey;
	__le32	rsvd[7];
};

struct qhca_wqe_atomic {		/* operands in host (little-endian) order */
	__le64	raddr;
	__le32	rkey;
	__le32	rsvd0;
	__le64	swap_add;
	__le64	compare;
	__le64	rsvd1;
};

struct qhca_wqe_ud {
	__le32	dest_qpn;
	__le32	qkey;
	struct qhca_av av;
};

struct qhca_wqe_bind {
	__le64	addr;
	__le64	length;			/* 0: unbind (type 1) */
	__le32	mr_lkey;
	__le32	mw_rkey;		/* present R_Key of the window */
	__le32	new_rkey;		/* R_Key from now on, same index */
	__le32	access;			/* QHCA_ACCESS_* */
	__le32	rsvd[2];
};

struct qhca_wqe_reg {
	__le64	iova;
	__le64	length;
	__le64	pages;			/* bus address of __le64 page addresses */
	__le32	key;			/* key with the new octet */
	__le32	access;
	__le32	num_pages;
	__u8	page_shift;
	__u8	rsvd[3];
};

struct qhca_wqe_flush {
	__le64	raddr;
	__le32	rkey;
	__le32	length;
	__u8	type;			/* placement: QHCA_FLUSH_GLOBAL, _PERSISTENT */
	__u8	level;			/* selectivity: QHCA_FLUSH_RANGE, _REGION */
	__u8	rsvd[22];
};

/* As in the FETH. */
#define QHCA_FLUSH_GLOBAL	0x1u
#define QHCA_FLUSH_PERSISTENT	0x2u
#define QHCA_FLUSH_TYPES	0x3u
#define QHCA_FLUSH_RANGE	0u
#define QHCA_FLUSH_REGION	1u

struct qhca_sq_wqe {
	__u8	opcode;			/* enum qhca_wqe_opcode */
	__u8	flags;			/* QHCA_WQE_F_* */
	__u8	num_sge;
	__u8	rsvd0;
	__le32	imm;			/* immediate, wire order; or key to invalidate (LE) */
	__le64	wr_id;
	__le32	inline_len;		/* with QHCA_WQE_F_INLINE */
	__le32	xrc_srqn;		/* XRC initiator: remote SRQ number */
	union {
		struct qhca_wqe_rdma	rdma;
		struct qhca_wqe_atomic	atomic;
		struct qhca_wqe_ud	ud;
		struct qhca_wqe_bind	bind;
		struct qhca_wqe_reg	reg;
		struct qhca_wqe_flush	flush;
		__u8			raw[40];
	};
};

QHCA_ASSERT_SIZE(struct qhca_sq_wqe, 64);

#define QHCA_WQE_F_SIGNALED	0x01u
#define QHCA_WQE_F_FENCE	0x02u
#define QHCA_WQE_F_SOLICITED	0x04u
#define QHCA_WQE_F_INLINE	0x08u

#define QHCA_MIN_LOG_WQE_STRIDE		7	/* header and four segments */
#define QHCA_MIN_LOG_RWQE_STRIDE	5	/* header and one segment */

/* Receive work queue entry, followed by num_sge data segments. */
struct qhca_rq_wqe {
	__le64	wr_id;
	__le16	num_sge;
	__le16	next;			/* SRQ: slot that follows this one */
	__le32	rsvd;
};

QHCA_ASSERT_SIZE(struct qhca_rq_wqe, 16);

/* ------------------------------------------------------------------------
 * Counters, in the order of QUERY_COUNTERS.  Append only.
 */
#define QHCA_COUNTERS(X) \
	X(pt_hits) X(pt_misses) X(pt_evictions) X(pt_conflicts) \
	X(pt_invalidations) X(pt_stale_fills) \
	X(at_hits) X(at_misses) X(at_evictions) X(at_conflicts) \
	X(at_invalidations) X(at_stale_fills) X(at_node_reads) \
	X(qpc_hits) X(qpc_misses) X(qpc_evictions) X(qpc_writebacks) \
	X(cqc_hits) X(cqc_misses) X(cqc_evictions) X(cqc_writebacks) \
	X(srqc_hits) X(srqc_misses) X(srqc_evictions) X(srqc_writebacks) \
	X(refetches) X(refetches_unchanged) X(refetches_before_rnr) \
	X(refetches_before_overrun) X(reserved_lkey_uses) X(pool_direct_uses) \
	X(sq_doorbells) X(cq_arms) X(eq_arms) X(doorbells_ignored) \
	X(commands) X(command_errors) X(events) X(events_held) X(interrupts) \
	X(tx_packets) X(tx_bytes) X(rx_packets) X(rx_bytes) X(loopback_packets) \
	X(tx_acks) X(rx_acks) X(tx_nak_seq) X(rx_nak_seq) \
	X(tx_nak_invalid) X(tx_nak_access) X(tx_nak_op) \
	X(rx_nak_invalid) X(rx_nak_access) X(rx_nak_op) \
	X(tx_rnr_no_wqe) X(tx_rnr_fault1) X(tx_rnr_fault2) X(rx_rnr) \
	X(duplicate_requests) X(out_of_sequence) X(ack_timeouts) \
	X(retransmitted_packets) X(retry_exceeded) X(rnr_retry_exceeded) \
	X(rx_icrc_errors) X(rx_malformed) X(rx_no_qp) X(rx_bad_pkey) \
	X(rx_bad_qkey) X(rx_bad_state) X(rx_dropped) X(ud_dropped) X(uc_dropped) \
	X(tx_unsolicited_acks) X(rx_unsolicited_acks) \
	X(completions) X(completions_error) X(completions_flushed) X(cq_overruns) \
	X(page_faults1) X(page_faults2) X(fault_resumes) X(fault_failures) \
	X(faults_coalesced) X(protection_errors) \
	X(eth_tx_packets) X(eth_tx_bytes) X(eth_rx_packets) X(eth_rx_bytes) \
	X(eth_rx_no_buffer) X(eth_rx_filtered) X(eth_tx_errors) \
	X(inject_dropped) X(inject_duplicated) X(inject_reordered) \
	X(inject_corrupted) X(inject_delayed) \
	X(pool_bank_hits) X(devmem_uses) \
	X(fault_gather) X(fault_scatter) X(fault_recv) X(fault_rdma_write) \
	X(fault_rdma_read) X(fault_atomic) X(fault_dropped) X(faults_forgotten) \
	X(fault_us_16) X(fault_us_64) X(fault_us_256) X(fault_us_1024) \
	X(fault_us_4096) X(fault_us_16384) X(fault_us_65536) \
	X(fault_us_262144) X(fault_us_more) \
	X(sq_wqes_found) X(cq_refetches) X(rq_refetches) X(srq_refetches) \
	X(qpc_conflicts) X(qpc_invalidations) X(qpc_stale_fills) \
	X(cqc_conflicts) X(cqc_invalidations) X(cqc_stale_fills) \
	X(srqc_conflicts) X(srqc_invalidations) X(srqc_stale_fills) \
	X(fetch_stall_ns) \
	X(raw_tx_packets) X(raw_rx_packets) X(raw_rx_dropped) \
	X(rx_own_mac) \
	X(pool_bank_full) \
	X(sq_refetches) X(sq_active_writes) \
	X(switched_packets) X(switch_dropped) X(spoofed) X(rate_waits) \
	X(s2_hits) X(s2_misses) X(s2_evictions) X(s2_conflicts) \
	X(s2_invalidations) X(s2_stale_fills) X(s2_node_reads) \
	X(pin_requests) X(fault_eth_tx) X(fault_eth_rx) X(eth_fault_dropped) \
	X(eth_tx_tso)

enum qhca_counter {
#define QHCA_COUNTER_ENUM(name) QHCA_CNT_##name,
	QHCA_COUNTERS(QHCA_COUNTER_ENUM)
#undef QHCA_COUNTER_ENUM
	QHCA_NUM_COUNTERS
};

#endif /* QHCA_HW_H */
