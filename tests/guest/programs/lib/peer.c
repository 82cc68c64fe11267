// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

unsigned long parse_number(const char *text, unsigned long least, unsigned long most)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || n < least || n > most)
		die("%s is no number of %lu to %lu", text, least, most);
	return n;
}

bool peer_option(struct peer *peer, int option, const char *value)
{
	switch (option) {
	case 'd':
		peer->device = value;
		return true;
	case 'g':
		peer->gid_index = parse_number(value, 0, UINT8_MAX);
		return true;
	case 'p':
		peer->port = parse_number(value, 1, UINT16_MAX);
		return true;
	default:
		return false;
	}
}

struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i]; i++) {
		if (name && strcmp(ibv_get_device_name(list[i]), name))
			continue;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			die("cannot open %s: %s", ibv_get_device_name(list[i]), strerror(errno));
		break;
	}
	if (list)
		ibv_free_device_list(list);
	if (!ctx)
		die("no RDMA device %s", name ? name : "at all");
	return ctx;
}

static int listen_and_accept(int port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int one = 1, fd, s = socket(AF_INET6, SOCK_STREAM, 0);

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(s, (struct sockaddr *)&any, sizeof(any)) || listen(s, 1))
		die("cannot listen on port %d: %s", port, strerror(errno));
	fd = accept(s, NULL, NULL);
	if (fd < 0)
		die("accept: %s", strerror(errno));
	close(s);
	return fd;
}

static int connect_to(const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	char service[8];
	int rc, fd;

	snprintf(service, sizeof(service), "%d", port);
	rc = getaddrinfo(host, service, &hints, &found);
	if (rc)
		die("%s: %s", host, gai_strerror(rc));
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen))
		die("cannot connect to %s port %d: %s", host, port, strerror(errno));
	freeaddrinfo(found);
	return fd;
}

void peer_open(struct peer *peer)
{
	int one = 1;

	peer->server = !peer->host;
	peer->ctx = device_open(peer->device);
	if (ibv_query_device(peer->ctx, &peer->attr))
		die("ibv_query_device: %s", strerror(errno));
	if (ibv_query_gid(peer->ctx, 1, peer->gid_index, &peer->gid))
		die("no GID with index %d", peer->gid_index);
	peer->sock = peer->server ? listen_and_accept(peer->port) : connect_to(peer->host, peer->port);
	setsockopt(peer->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void peer_close(struct peer *peer)
{
	close(peer->sock);
	if (ibv_close_device(peer->ctx))
		die("ibv_close_device: %s", strerror(errno));
}

void peer_send(struct peer *peer, const void *data, size_t len)
{
	if (send(peer->sock, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("the other side is gone: %s", strerror(errno));
}

void peer_receive(struct peer *peer, void *data, size_t len)
{
	ssize_t got = recv(peer->sock, data, len, MSG_WAITALL);

	if (got != (ssize_t)len)
		die("the other side is gone: %s", got < 0 ? strerror(errno) : "end of file");
}

void peer_exchange(struct peer *peer, const void *mine, void *theirs, size_t len)
{
	peer_send(peer, mine, len);
	peer_receive(peer, theirs, len);
}

void peer_barrier(struct peer *peer)
{
	char mine = '.', theirs;

	peer_exchange(peer, &mine, &theirs, 1);
}

bool event_is_of_port(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return true;
	default:
		return false;
	}
}

struct ibv_ah_attr path_to(const union ibv_gid *gid, int gid_index)
{
	return (struct ibv_ah_attr) {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = gid_index, .hop_limit = 64 },
	};
}

int qp_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int qp_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int qp_init(struct ibv_qp *qp, const struct connection *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = c->access,
		.qkey = TEST_QKEY,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= c->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	return ibv_modify_qp(qp, &attr, mask);
}

int qp_to_rtr(struct ibv_qp *qp, const struct connection *c, int gid_index,
	      const struct qp_address *remote)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = c->mtu,
		.dest_qp_num = remote->qpn,
		.rq_psn = remote->psn,
		.max_dest_rd_atomic = c->dest_rd_atomic,
		.min_rnr_timer = c->min_rnr_timer,
		.ah_attr = path_to(&remote->gid, gid_index),
	};
	int mask = IBV_QP_STATE;

	if (c->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (c->type == IBV_QPT_RC || c->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

int qp_to_rts(struct ibv_qp *qp, const struct connection *c, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.max_rd_atomic = c->rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (c->type == IBV_QPT_RC || c->type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (c->type == IBV_QPT_RC || c->type == IBV_QPT_XRC_SEND ||
	    c->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	return ibv_modify_qp(qp, &attr, mask);
}

int qp_connect(struct ibv_qp *qp, const struct connection *c, int gid_index,
	       const struct qp_address *remote, uint32_t psn)
{
	int rc = qp_init(qp, c);

	if (!rc)
		rc = qp_to_rtr(qp, c, gid_index, remote);
	if (!rc)
		rc = qp_to_rts(qp, c, psn);
	return rc;
}

int qp_connect_pair(struct ibv_qp *const qp[2], const struct connection *c, int gid_index)
{
	struct qp_address remote = { 0 };

	if (ibv_query_gid(qp[0]->context, 1, gid_index, &remote.gid))
		return EINVAL;
	for (int i = 0; i < 2; i++) {
		int rc;

		remote.qpn = qp[!i]->qp_num;
		rc = qp_connect(qp[i], c, gid_index, &remote, 0);
		if (rc)
			return rc;
	}
	return 0;
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		die("ibv_query_qp: %s", strerror(errno));
	return attr.qp_state;
}
