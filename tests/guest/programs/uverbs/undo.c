// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-undo: what an ordinary user can ask of uverbs and libibverbs never does,
 * within one guest: commands whose answer cannot be written, so that the kernel
 * undoes them; a QP attached twice to one multicast group; regions registered by
 * the newer call, and what the kernel says about regions of every kind. Prints TAP.
 * Whether anything is left behind, the caller sees after the end of the process.
 *
 *   qhca-undo -g GID-INDEX [-d DEVICE] [-u UID]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <uapi/rdma/qhca-abi.h>
#include <infiniband/qhcadv.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define PAGE		4096u
#define SOON		60000		/* ms */
#define GROUP_QKEY	0x1234

/* Of the registration call that headers of older kernels do not have. */
#define METHOD_REG_MR	5
enum { REG_MR_HANDLE, REG_MR_PD, REG_MR_DMA_HANDLE, REG_MR_IOVA, REG_MR_ADDR,
       REG_MR_LENGTH, REG_MR_ACCESS, REG_MR_FD, REG_MR_FD_OFFSET, REG_MR_LKEY,
       REG_MR_RKEY };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static int gid_index;
static int udmabuf = -1;
static void *queue;		/* memory for the rings of raw commands */

/* -- creations that are undone ----------------------------------------------- */

/* A command: the core's part, then the driver's. */
struct command {
	const char *name;
	uint32_t number;
	const void *request;
	size_t length, driver_length;
	size_t answer, driver_answer;
};

/*
 * Two pages, of which the first can only be read. An answer whose driver's part is
 * in the second is one that the driver can write and the core cannot.
 */
static uint8_t *answer_pages(void)
{
	uint8_t *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED);
	MUST(!mprotect(page, PAGE, PROT_READ));
	return page;
}

/* The error number of a command whose answer is to go to @answer. */
static int run(const struct command *c, const void *answer)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint64_t response;
		uint8_t rest[240];
	} __attribute__((packed)) message = {
		.hdr = {
			.command = c->number,
			.in_words = (sizeof(message.hdr) + c->length + c->driver_length) / 4,
			.out_words = (c->answer + c->driver_answer) / 4,
		},
	};
	size_t size = message.hdr.in_words * 4ul;

	MUST(size <= sizeof(message));
	memcpy(&message.response, c->request, c->length + c->driver_length);
	message.response = (uintptr_t)answer;
	return write(ctx->cmd_fd, &message, size) == (ssize_t)size ? 0 : errno;
}

static void undone(const struct command *c)
{
	uint8_t *page = answer_pages();
	char name[100];

	snprintf(name, sizeof(name), "%s, whose answer only the driver can write", c->name);
	tap_point(run(c, page + PAGE - c->answer) == EFAULT, "%s", name);
	snprintf(name, sizeof(name), "%s, whose answer nobody can write", c->name);
	tap_point(run(c, page) == EFAULT, "%s", name);
	/* The same command is a good one otherwise. */
	snprintf(name, sizeof(name), "%s", c->name);
	tap_point(!run(c, page + PAGE), "%s", name);
	munmap(page, 2 * PAGE);
}

#define DRIVER_PART(_request, _core) \
	.request = &(_request), .length = sizeof(_core), \
	.driver_length = sizeof(_request) - sizeof(_core)

static void undone_queues(void)
{
	struct {
		struct ib_uverbs_create_cq core;
		struct qhca_create_cq_req driver;
	} new_cq = {
		.core = { .cqe = 8, .comp_channel = -1 },
		.driver = { .buf_addr = (uintptr_t)queue, .buf_length = PAGE,
			    .rec_offset = PAGE / 2, .log_depth = 4 },
	};
	struct {
		struct ib_uverbs_create_qp core;
		struct qhca_create_qp_req driver;
	} new_qp = {
		.core = { .pd_handle = pd->handle, .send_cq_handle = cq->handle,
			  .recv_cq_handle = cq->handle, .max_send_wr = 4, .max_recv_wr = 4,
			  .max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_RC },
		.driver = { .buf_addr = (uintptr_t)queue, .buf_length = PAGE,
			    .rq_offset = PAGE / 4, .rec_offset = PAGE / 2,
			    .sq_log_depth = 2, .sq_log_stride = 7,
			    .rq_log_depth = 2, .rq_log_stride = 6 },
	};
	struct {
		struct ib_uverbs_create_srq core;
		struct qhca_create_srq_req driver;
	} new_srq = {
		.core = { .pd_handle = pd->handle, .max_wr = 8, .max_sge = 1 },
		.driver = { .buf_addr = (uintptr_t)queue, .buf_length = PAGE,
			    .rec_offset = PAGE / 2, .log_depth = 4, .log_stride = 6 },
	};
	const struct command commands[] = {
		{ "a CQ", IB_USER_VERBS_CMD_CREATE_CQ, DRIVER_PART(new_cq, new_cq.core),
		  sizeof(struct ib_uverbs_create_cq_resp), sizeof(struct qhca_create_cq_resp) },
		{ "a QP", IB_USER_VERBS_CMD_CREATE_QP, DRIVER_PART(new_qp, new_qp.core),
		  sizeof(struct ib_uverbs_create_qp_resp), sizeof(struct qhca_create_qp_resp) },
		{ "an SRQ", IB_USER_VERBS_CMD_CREATE_SRQ, DRIVER_PART(new_srq, new_srq.core),
		  sizeof(struct ib_uverbs_create_srq_resp),
		  sizeof(struct qhca_create_srq_resp) },
	};

	for (unsigned int i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		undone(&commands[i]);
}

/* Some of these have a driver's part that is to be empty, and stays so. */
static void undone_others(void)
{
	union ibv_gid gid;
	struct {
		struct ib_uverbs_alloc_pd core;
		uint64_t driver;
	} new_pd = {};
	struct {
		struct ib_uverbs_reg_mr core;
		uint64_t driver;
	} new_mr = {
		.core = { .start = (uintptr_t)queue, .length = PAGE,
			  .hca_va = (uintptr_t)queue, .pd_handle = pd->handle,
			  .access_flags = IBV_ACCESS_LOCAL_WRITE },
	};
	struct {
		struct ib_uverbs_alloc_mw core;
		uint64_t driver;
	} new_mw = {
		.core = { .pd_handle = pd->handle, .mw_type = IBV_MW_TYPE_1 },
	};
	struct {
		struct ib_uverbs_create_ah core;
		uint64_t driver;
	} new_ah = {
		.core = { .pd_handle = pd->handle,
			  .attr = { .is_global = 1, .port_num = 1,
				    .grh = { .sgid_index = gid_index, .hop_limit = 64 } } },
	};
	struct {
		struct ib_uverbs_open_xrcd core;
		uint64_t driver;
	} new_xrcd = {
		.core = { .fd = -1, .oflags = O_CREAT },
	};
	const struct command commands[] = {
		{ "a PD", IB_USER_VERBS_CMD_ALLOC_PD, DRIVER_PART(new_pd, new_pd.core),
		  sizeof(struct ib_uverbs_alloc_pd_resp), sizeof(struct qhca_alloc_pd_resp) },
		{ "a region", IB_USER_VERBS_CMD_REG_MR, DRIVER_PART(new_mr, new_mr.core),
		  sizeof(struct ib_uverbs_reg_mr_resp), 8 },
		{ "a window", IB_USER_VERBS_CMD_ALLOC_MW, DRIVER_PART(new_mw, new_mw.core),
		  sizeof(struct ib_uverbs_alloc_mw_resp), 8 },
		{ "an AH", IB_USER_VERBS_CMD_CREATE_AH, DRIVER_PART(new_ah, new_ah.core),
		  sizeof(struct ib_uverbs_create_ah_resp), sizeof(struct qhca_create_ah_resp) },
		{ "an XRC domain", IB_USER_VERBS_CMD_OPEN_XRCD,
		  DRIVER_PART(new_xrcd, new_xrcd.core),
		  sizeof(struct ib_uverbs_open_xrcd_resp), 8 },
	};

	MUST(!ibv_query_gid(ctx, 1, gid_index, &gid));
	memcpy(new_ah.core.attr.grh.dgid, gid.raw, sizeof(gid.raw));
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		undone(&commands[i]);
}

/* -- methods of ioctl() ------------------------------------------------------ */

struct method {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[12];
};

static void add(struct method *m, uint16_t id, uint16_t len, uint64_t data)
{
	m->attr[m->hdr.num_attrs++] = (struct ib_uverbs_attr) {
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
}

/* The error number. */
static int call(struct method *m, uint16_t object, uint16_t method)
{
	m->hdr.object_id = object;
	m->hdr.method_id = method;
	m->hdr.length = sizeof(m->hdr) + m->hdr.num_attrs * sizeof(m->attr[0]);
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, m) ? errno : 0;
}

static uint64_t pool_free(void)
{
	struct qhcadv_pool_attr attr;

	MUST(!qhcadv_query_pool(ctx, &attr, sizeof(attr)));
	return attr.free;
}

static void undone_pool(void)
{
	uint64_t before = pool_free();
	uint8_t *page = answer_pages();
	struct method m = {};

	add(&m, QHCA_IB_ATTR_POOL_ALLOC_HANDLE, 0, 0);
	add(&m, QHCA_IB_ATTR_POOL_ALLOC_LENGTH, sizeof(uint64_t), 16 * PAGE);
	add(&m, QHCA_IB_ATTR_POOL_ALLOC_RESP, sizeof(struct qhca_pool_alloc_resp),
	    (uintptr_t)page);
	tap_point(call(&m, QHCA_IB_OBJECT_POOL, QHCA_IB_METHOD_POOL_ALLOC) == EFAULT &&
		  pool_free() == before, "pool memory is freed if the answer cannot be written");
	munmap(page, 2 * PAGE);
}

/* -- regions ----------------------------------------------------------------- */

/* What the kernel says about a region, which a process that imports it relies on. */
static bool range_is(uint32_t handle, uint64_t iova, uint64_t length)
{
	uint64_t told_iova = 0, told_length = 0;
	uint32_t lkey, rkey;
	struct method m = {};

	add(&m, UVERBS_ATTR_QUERY_MR_HANDLE, 0, handle);
	add(&m, UVERBS_ATTR_QUERY_MR_RESP_LKEY, sizeof(lkey), (uintptr_t)&lkey);
	add(&m, UVERBS_ATTR_QUERY_MR_RESP_RKEY, sizeof(rkey), (uintptr_t)&rkey);
	add(&m, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, sizeof(uint64_t), (uintptr_t)&told_length);
	add(&m, UVERBS_ATTR_QUERY_MR_RESP_IOVA, sizeof(uint64_t), (uintptr_t)&told_iova);
	MUST(!call(&m, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR));
	if (told_iova == iova && told_length == length)
		return true;
	printf("# region at %#llx of %llu bytes, not at %#llx of %llu\n",
	       (unsigned long long)told_iova, (unsigned long long)told_length,
	       (unsigned long long)iova, (unsigned long long)length);
	return false;
}

/* By the method of newer kernels, which passes the driver no context. */
static int register_by_ioctl(void *start, uint64_t length, uint32_t *handle)
{
	uint32_t lkey, rkey;
	struct method m = {};
	int err;

	add(&m, REG_MR_HANDLE, 0, 0);
	add(&m, REG_MR_PD, 0, pd->handle);
	add(&m, REG_MR_IOVA, sizeof(uint64_t), (uintptr_t)start);
	add(&m, REG_MR_ADDR, sizeof(uint64_t), (uintptr_t)start);
	add(&m, REG_MR_LENGTH, sizeof(uint64_t), length);
	add(&m, REG_MR_ACCESS, sizeof(uint32_t), IBV_ACCESS_LOCAL_WRITE);
	add(&m, REG_MR_LKEY, sizeof(lkey), (uintptr_t)&lkey);
	add(&m, REG_MR_RKEY, sizeof(rkey), (uintptr_t)&rkey);
	err = call(&m, UVERBS_OBJECT_MR, METHOD_REG_MR);
	*handle = m.attr[0].data;
	return err;
}

static void end_region(uint32_t handle)
{
	struct method m = {};

	add(&m, UVERBS_ATTR_DESTROY_MR_HANDLE, 0, handle);
	MUST(!call(&m, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY));
}

static void newer_call(void)
{
	struct qhcadv_pool_mem *mem = qhcadv_alloc_pool(ctx, 2 * PAGE);
	const char *name = "a region made by the newer call";
	uint32_t handle;
	int err;

	err = register_by_ioctl(queue, PAGE, &handle);
	if (err == EPROTONOSUPPORT || err == ENOENT || err == EOPNOTSUPP) {
		tap_skip(name, "this kernel does not have it");
	} else {
		tap_point(!err && range_is(handle, (uintptr_t)queue, PAGE), "%s", name);
		if (!err)
			end_region(handle);
		MUST(mem);
		err = register_by_ioctl(mem->addr, 2 * PAGE, &handle);
		tap_point(!err && range_is(handle, (uintptr_t)mem->addr, 2 * PAGE),
			  "a region of pool memory made by the newer call");
		if (!err)
			end_region(handle);
	}
	if (mem)
		qhcadv_free_pool(ctx, mem);
}

static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 2 * PAGE };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	struct ibv_mr *mr;

	MUST(dm);
	mr = ibv_reg_dm_mr(pd, dm, PAGE, PAGE / 2,
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
	tap_point(range_is(mr->handle, 0, PAGE / 2), "the range of a region of device memory");
	MUST(!ibv_dereg_mr(mr));
	MUST(!ibv_free_dm(dm));
}

static void pool_memory(void)
{
	struct qhcadv_pool_mem *mem = qhcadv_alloc_pool(ctx, 2 * PAGE);
	struct ibv_mr *mr;

	MUST(mem);
	mr = ibv_reg_mr(pd, mem->addr, PAGE, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
	tap_point(range_is(mr->handle, (uintptr_t)mem->addr, PAGE),
		  "the range of a region of the pool's memory");
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, queue, 2 * PAGE, 0));
	tap_point(range_is(mr->handle, (uintptr_t)queue, 2 * PAGE), "the range after a reregistration");
	MUST(!ibv_dereg_mr(mr));
	MUST(!qhcadv_free_pool(ctx, mem));
}

/* A dma-buf, whose range survives a change of the access rights. */
static void dma_buffer(void)
{
	const char *name = "the range of a region of a dma-buf";
	struct udmabuf_create create = { .size = 4 * PAGE };
	const uint64_t iova = 0x10000 + PAGE;
	struct ib_uverbs_rereg_mr_resp answer;
	struct ib_uverbs_rereg_mr change = {
		.flags = IBV_REREG_MR_CHANGE_ACCESS,
		.access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	const struct command command = {
		"a change of a region", IB_USER_VERBS_CMD_REREG_MR, &change, sizeof(change), 0,
		sizeof(answer), 0,
	};
	struct ibv_mr *mr;
	int fd;

	if (udmabuf < 0) {
		tap_skip(name, "this kernel has no udmabuf");
		return;
	}
	fd = memfd_create("udmabuf", MFD_ALLOW_SEALING);
	MUST(fd >= 0);
	create.memfd = fd;
	MUST(!ftruncate(create.memfd, create.size));
	MUST(!fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	fd = ioctl(udmabuf, UDMABUF_CREATE, &create);
	MUST(fd >= 0);
	mr = ibv_reg_dmabuf_mr(pd, PAGE, 2 * PAGE, iova, fd, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
	tap_point(range_is(mr->handle, iova, 2 * PAGE), "%s", name);
	/* libibverbs refuses this for a dma-buf, the kernel does not. */
	change.mr_handle = mr->handle;
	MUST(!run(&command, &answer));
	tap_point(range_is(mr->handle, iova, 2 * PAGE), "the range after a change of the access rights");
	MUST(!ibv_dereg_mr(mr));
	close(fd);
	close(create.memfd);
}

/* -- multicast --------------------------------------------------------------- */

static struct ibv_qp *datagram_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = GROUP_QKEY,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	MUST(qp);
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

/* Sends a message and waits for its completion. */
static void send_one(struct ibv_qp *qp, struct ibv_mr *mr, struct ibv_ah *ah, uint32_t qpn,
		     uint32_t imm)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 16, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = imm,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = GROUP_QKEY },
	}, *bad;

	MUST(!ibv_post_send(qp, &wr, &bad));
}

/*
 * Does a message to the group reach the QP that sends it? Another one to the QP
 * itself follows on the same way, and when it is there the first would be, too.
 */
static bool is_member(struct ibv_qp *qp, struct ibv_mr *mr, struct ibv_ah *group,
		      struct ibv_ah *self)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad;
	uint64_t end = now_ns() + SOON * 1000000ull;
	unsigned int sends = 2, received[3] = {};
	struct ibv_wc wc;

	MUST(!ibv_post_recv(qp, &receive, &bad));
	MUST(!ibv_post_recv(qp, &receive, &bad));
	send_one(qp, mr, group, 0xffffff, 1);
	send_one(qp, mr, self, qp->qp_num, 2);
	while (sends || received[1] + received[2] < 2) {
		int n = ibv_poll_cq(cq, 1, &wc);

		MUST(n >= 0 && now_ns() < end);
		if (!n)
			continue;
		MUST(!wc.status);
		if (wc.wr_id == 1) {
			sends--;
			continue;
		}
		MUST(wc.imm_data == 1 || wc.imm_data == 2);
		/* One without the other: use up the second receive as well. */
		if (++received[wc.imm_data] == 1 && wc.imm_data == 2 && !received[1]) {
			send_one(qp, mr, self, qp->qp_num, 2);
			sends++;
		}
	}
	return received[1];
}

static void attached_twice(void)
{
	union ibv_gid gid, group = { .raw = { [10] = 0xff, 0xff, 239, 77, 0, 1 } };
	struct ibv_ah_attr path;
	struct ibv_ah *to_group, *to_self;
	struct ibv_qp *qp = datagram_qp(), *other;
	struct ibv_mr *mr = ibv_reg_mr(pd, (uint8_t *)queue + PAGE, PAGE,
				       IBV_ACCESS_LOCAL_WRITE);

	MUST(mr && !ibv_query_gid(ctx, 1, gid_index, &gid));
	path = path_to(&gid, gid_index);
	to_self = ibv_create_ah(pd, &path);
	path = path_to(&group, gid_index);
	to_group = ibv_create_ah(pd, &path);
	MUST(to_self && to_group);

	MUST(!ibv_attach_mcast(qp, &group, 0));
	/* The core knows this membership, and does not ask the driver. */
	MUST(!ibv_attach_mcast(qp, &group, 0));
	MUST(!ibv_attach_mcast(qp, &group, 0xc001));
	MUST(!ibv_attach_mcast(qp, &group, 0xc002));
	tap_point(is_member(qp, mr, to_group, to_self), "a QP that is attached to a group three times is a member");
	tap_point(!ibv_detach_mcast(qp, &group, 0) && !ibv_detach_mcast(qp, &group, 0xc002) &&
		  is_member(qp, mr, to_group, to_self), "a QP that is detached twice is still a member");
	tap_point(!ibv_detach_mcast(qp, &group, 0xc001) &&
		  !is_member(qp, mr, to_group, to_self), "a QP that is detached three times is no member");
	tap_point(ibv_detach_mcast(qp, &group, 0xc001) == EINVAL, "detaching it a fourth time fails");
	tap_point(!ibv_attach_mcast(qp, &group, 0) && is_member(qp, mr, to_group, to_self) &&
		  ibv_destroy_qp(qp) == EBUSY && !ibv_detach_mcast(qp, &group, 0),
		  "a QP that is a member again");
	tap_point(!ibv_destroy_qp(qp), "the QP is destroyed");

	/* These are left to the end of the process. */
	qp = datagram_qp();
	other = datagram_qp();
	tap_point(!ibv_attach_mcast(qp, &group, 0) && !ibv_attach_mcast(qp, &group, 1) &&
		  !ibv_attach_mcast(other, &group, 0) && !ibv_attach_mcast(other, &group, 1) &&
		  !ibv_detach_mcast(other, &group, 1), "QPs that are left attached");
}

static void open_device(const char *name)
{
	ctx = device_open(name);
	MUST(ctx);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	MUST(pd && cq);
	queue = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	MUST(queue != MAP_FAILED);
	memset(queue, 0, 2 * PAGE);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	uid_t uid = geteuid();
	int option;

	while ((option = getopt(argc, argv, "d:g:u:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			gid_index = parse_number(optarg, 0, 255);
		else if (option == 'u')
			uid = parse_number(optarg, 0, 65535);
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	udmabuf = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	MUST(!setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));

	open_device(device);
	undone_queues();
	undone_others();
	undone_pool();
	newer_call();
	device_memory();
	pool_memory();
	dma_buffer();
	attached_twice();
	/* What is left goes with the file of the context. */
	return tap_end();
}
