/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two processes on two machines: an RDMA device each, and one TCP connection
 * over which they agree on what to do and wait for each other.
 */
#ifndef PEER_H
#define PEER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct peer {
	const char *device;	/* -d */
	int gid_index;		/* -g */
	int port;		/* -p */
	const char *host;	/* NULL: the server */
	bool server;
	int sock;
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	union ibv_gid gid;
};

/* What the other side must know of a QP. */
struct qp_address {
	uint32_t qpn;
	uint32_t psn;
	union ibv_gid gid;
};

/* How QPs are connected; both sides use the same. */
struct connection {
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
	uint8_t dest_rd_atomic;
	int access;
};

#define TEST_QKEY 0x1ee7f00d

/* printf to stderr and exit with 1 */
__attribute__((noreturn, format(printf, 1, 2)))
void die(const char *format, ...);

/* Or there is no going on. */
#define MUST(condition)						\
	do {								\
		if (!(condition))					\
			die("%s:%d: %s (errno %d)", __func__, __LINE__,	\
			    #condition, errno);				\
	} while (0)

uint64_t now_ns(void);

/* What @text says in decimal, octal or hexadecimal; dies if it is not within. */
unsigned long parse_number(const char *text, unsigned long least, unsigned long most);

/* The device of that name, or the first. */
struct ibv_context *device_open(const char *name);

/* getopt()'s, of who the peer is: peer_option() takes them, and no others. */
#define PEER_OPTIONS "d:g:p:"
bool peer_option(struct peer *peer, int option, const char *value);

/* Opens the device and connects to, or waits for, the other process. */
void peer_open(struct peer *peer);
void peer_close(struct peer *peer);

void peer_send(struct peer *peer, const void *data, size_t len);
void peer_receive(struct peer *peer, void *data, size_t len);
void peer_exchange(struct peer *peer, const void *mine, void *theirs, size_t len);
void peer_barrier(struct peer *peer);

/*
 * Moves a QP from any state to RTS. Each returns an error number; the state
 * is then that of the step which failed.
 */
int qp_reset(struct ibv_qp *qp);
int qp_init(struct ibv_qp *qp, const struct connection *c);
int qp_to_rtr(struct ibv_qp *qp, const struct connection *c, int gid_index,
	      const struct qp_address *remote);
int qp_to_rts(struct ibv_qp *qp, const struct connection *c, uint32_t psn);
/* These three, for a QP in RESET. */
int qp_connect(struct ibv_qp *qp, const struct connection *c, int gid_index,
	       const struct qp_address *remote, uint32_t psn);
/* Two QPs in RESET, of one port, to each other. */
int qp_connect_pair(struct ibv_qp *const qp[2], const struct connection *c, int gid_index);
int qp_error(struct ibv_qp *qp);
enum ibv_qp_state qp_state(struct ibv_qp *qp);

/*
 * Is an asynchronous event the port's?  Those come to each process that has the
 * device open whenever the network is set up anew, and tell nothing of its queues.
 */
bool event_is_of_port(enum ibv_event_type type);

/* The address vector of a QP, for RC and UC, or for an AH. */
struct ibv_ah_attr path_to(const union ibv_gid *gid, int gid_index);

#endif
