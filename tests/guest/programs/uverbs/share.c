// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context, protection domain, region and device memory that one process makes
 * and another one imports, within one guest.  Prints TAP.
 *
 *   qhca-share [-d DEVICE] [-g GID-INDEX]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define SIZE	65536
#define DM_SIZE	8192

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const char *device_name;
static int gid_index;
static uint8_t *shared;			/* memory of both processes */

/* What one process sends the other, with the file of the context. */
struct handles {
	uint32_t pd, mr, dm, dm_mr;
	uint32_t rkey, dm_rkey;
};

static void send_handles(int sock, int fd, const struct handles *h)
{
	char room[CMSG_SPACE(sizeof(int))] = { };
	struct iovec iov = { (void *)h, sizeof(*h) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	MUST(sendmsg(sock, &msg, 0) == sizeof(*h));
}

static int receive_handles(int sock, struct handles *h)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { h, sizeof(*h) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof(room) };
	int fd;

	MUST(recvmsg(sock, &msg, 0) == sizeof(*h) && CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Waits until the other process has come to the same point. */
static void meet(int sock)
{
	char c = 0;

	MUST(write(sock, &c, 1) == 1 && read(sock, &c, 1) == 1);
}

/* ---- whoever makes the objects */

struct maker {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr, *dm_mr;
	struct ibv_dm *dm;
};

static struct maker make(int sock)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_SIZE };
	struct maker m = { .ctx = device_open(device_name) };
	struct handles h;

	m.pd = ibv_alloc_pd(m.ctx);
	MUST(m.pd);
	m.mr = ibv_reg_mr(m.pd, shared, SIZE, RW);
	m.dm = ibv_alloc_dm(m.ctx, &attr);
	MUST(m.mr && m.dm);
	m.dm_mr = ibv_reg_dm_mr(m.pd, m.dm, 0, DM_SIZE, RW | IBV_ACCESS_ZERO_BASED);
	MUST(m.dm_mr);
	h = (struct handles) { m.pd->handle, m.mr->handle, m.dm->handle, m.dm_mr->handle,
			       m.mr->rkey, m.dm_mr->rkey };
	send_handles(sock, m.ctx->cmd_fd, &h);
	return m;
}

static void unmake(struct maker *m)
{
	MUST(!ibv_dereg_mr(m->dm_mr) && !ibv_free_dm(m->dm) && !ibv_dereg_mr(m->mr) &&
	      !ibv_dealloc_pd(m->pd) && !ibv_close_device(m->ctx));
}

/* ---- whoever imports them */

struct user {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr, *dm_mr, *own;
	struct ibv_dm *dm;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];		/* each other's peer */
	uint8_t *buf;
};

static void connect_qps(struct user *u)
{
	const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_4096, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	MUST(!qp_connect_pair(u->qp, &c, gid_index));
}

static struct user import(int sock)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct handles h;
	struct user u = { .ctx = ibv_import_device(receive_handles(sock, &h)) };

	MUST(u.ctx);
	u.pd = ibv_import_pd(u.ctx, h.pd);
	MUST(u.pd);
	u.mr = ibv_import_mr(u.pd, h.mr);
	u.dm = ibv_import_dm(u.ctx, h.dm);
	u.dm_mr = ibv_import_mr(u.pd, h.dm_mr);
	MUST(u.mr && u.dm && u.dm_mr);
	MUST(u.mr->rkey == h.rkey && u.mr->length == SIZE && u.dm_mr->rkey == h.dm_rkey);
	/* A process cannot import what the context does not have. */
	MUST(!ibv_import_mr(u.pd, h.pd + 1000) && !ibv_import_dm(u.ctx, h.dm + 1000));

	u.buf = aligned_alloc(4096, SIZE);
	u.own = ibv_reg_mr(u.pd, u.buf, SIZE, RW);
	u.cq = ibv_create_cq(u.ctx, 32, NULL, NULL, 0);
	MUST(u.own && u.cq);
	init.send_cq = init.recv_cq = u.cq;
	for (int i = 0; i < 2; i++) {
		u.qp[i] = ibv_create_qp(u.pd, &init);
		MUST(u.qp[i]);
	}
	connect_qps(&u);
	return u;
}

static void unimport(struct user *u)
{
	MUST(!ibv_destroy_qp(u->qp[0]) && !ibv_destroy_qp(u->qp[1]));
	MUST(!ibv_destroy_cq(u->cq) && !ibv_dereg_mr(u->own));
	ibv_unimport_mr(u->dm_mr);
	ibv_unimport_dm(u->dm);
	ibv_unimport_mr(u->mr);
	ibv_unimport_pd(u->pd);
	MUST(!ibv_close_device(u->ctx));
	free(u->buf);
}

/* From this process's own memory to what @rkey names. */
static void write_to(struct user *u, uint8_t byte, uint32_t len, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)u->buf, len, u->own->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;
	int n;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	memset(u->buf, byte, len);
	MUST(!ibv_post_send(u->qp[0], &wr, &bad));
	do
		n = ibv_poll_cq(u->cq, 1, &wc);
	while (!n);
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
}

/* ---- cases */

/* Both use the objects; those of the maker are there when the user has gone. */
static void used_by_two(int sock, bool maker)
{
	uint8_t word[4];

	if (maker) {
		struct maker m = make(sock);

		meet(sock);
		MUST(shared[0] == 0x51 && shared[SIZE - 1] == 0x51);
		MUST(!ibv_memcpy_from_dm(word, m.dm, 4096, 4) && word[0] == 0x52);
		MUST(!ibv_memcpy_from_dm(word, m.dm, 0, 4) && word[3] == 0x53);
		memset(word, 0x54, sizeof(word));
		MUST(!ibv_memcpy_to_dm(m.dm, 8, word, 4));
		MUST(ibv_dealloc_pd(m.pd));	/* it has regions, and QPs */
		meet(sock);
		meet(sock);
		unmake(&m);
	} else {
		struct user u = import(sock);

		write_to(&u, 0x51, SIZE, (uintptr_t)shared, u.mr->rkey);
		write_to(&u, 0x52, 64, 4096, u.dm_mr->rkey);
		memset(word, 0x53, sizeof(word));
		MUST(!ibv_memcpy_to_dm(u.dm, 0, word, 4));
		meet(sock);
		meet(sock);
		MUST(!ibv_memcpy_from_dm(word, u.dm, 8, 4) && word[2] == 0x54);
		unimport(&u);
		meet(sock);
	}
}

/* The maker ends without cleaning up; its objects live as long as its context. */
static void outlives_its_maker(int sock, bool maker)
{
	uint8_t word[4];

	if (maker) {
		make(sock);
		meet(sock);
		_exit(0);
	} else {
		struct user u = import(sock);

		meet(sock);
		MUST(!read(sock, word, 1));
		write_to(&u, 0x61, SIZE, (uintptr_t)shared, u.mr->rkey);
		MUST(shared[0] == 0x61 && shared[SIZE - 1] == 0x61);
		write_to(&u, 0x62, 64, 0, u.dm_mr->rkey);
		MUST(!ibv_memcpy_from_dm(word, u.dm, 0, 4) && word[0] == 0x62);
		unimport(&u);
	}
}

/* Files that are not of a device, or not of one of ours. */
static void imports_nothing_else(int sock, bool maker)
{
	int fd[2] = { open("/dev/null", O_RDWR), memfd_create("none", 0) };

	(void)sock;
	for (int i = 0; maker && i < 2; i++) {
		MUST(fd[i] >= 0);
		MUST(!ibv_import_device(fd[i]));
	}
}

static const struct {
	const char *name;
	void (*run)(int sock, bool maker);
} cases[] = {
	{ "objects of another process", used_by_two },
	{ "objects outlive the process that made them", outlives_its_maker },
	{ "only contexts are imported", imports_nothing_else },
};

/* Two processes; true: both end well. */
static bool run(void (*run_one)(int sock, bool maker))
{
	int sock[2], status, bad = 0;

	memset(shared, 0, SIZE);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			close(sock[!i]);
			run_one(sock[i], i);
			exit(0);
		}
	close(sock[0]);
	close(sock[1]);
	while (wait(&status) > 0)
		bad |= status;
	return !bad;
}

int main(int argc, char **argv)
{
	unsigned int n = sizeof(cases) / sizeof(cases[0]);
	int o;

	while ((o = getopt(argc, argv, "d:g:")) != -1) {
		switch (o) {
		case 'd': device_name = optarg; break;
		case 'g': gid_index = parse_number(optarg, 0, INT_MAX); break;
		default: die("usage: qhca-share [-d DEVICE] [-g GID-INDEX]");
		}
	}
	shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared != MAP_FAILED);
	setvbuf(stdout, NULL, _IONBF, 0);
	for (unsigned int i = 0; i < n; i++)
		tap_point(run(cases[i].run), "%s", cases[i].name);
	return tap_end();
}
