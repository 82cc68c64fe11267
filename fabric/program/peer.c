// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connections of ports to their peers. peer.h explains them. */
#include "program/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Frames that one system call sends. */
#define MAX_PIECES	64

void sw_peer_close(struct sw_peer *peer)
{
	struct sw_port *port = peer->port;

	sw_stream_reset(&peer->in);
	if (peer->part)
		fab_frame_put(peer->part);
	peer->part = NULL;
	port->peer = NULL;
	fab_port_set_peer(port->app->model, port->number, false);
	sw_loop_close(&port->app->loop, &peer->source);
}

/* The peer has gone, and so does a port that was made for it. */
static void disconnect(struct sw_peer *peer)
{
	struct sw_port *port = peer->port;

	sw_peer_close(peer);
	if (!port->permanent)
		sw_port_remove(port);
}

/* Gives the model the frames of what was read. Returns false if the peer must go. */
static bool take_in(struct sw_peer *peer, const uint8_t *data, size_t len)
{
	struct sw_port *port = peer->port;
	struct fab_frame *frame;

	for (;;) {
		switch (sw_stream_read(&peer->in, &data, &len, &frame)) {
		case SW_STREAM_FRAME:
			fab_receive(port->app->model, port->number, frame);
			break;
		case SW_STREAM_NO_MEMORY:
			port->count.no_memory++;
			break;
		case SW_STREAM_BAD_LENGTH:
			port->count.bad_lengths++;
			return false;
		case SW_STREAM_MORE:
			return true;
		}
	}
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static void read_some(struct sw_peer *peer)
{
	struct sw_app *app = peer->port->app;
	ssize_t n;

	/* The frames come now, and not when the wait for them began. */
	fab_advance(app->model, sw_loop_now(&app->loop));
	n = recv(peer->source.fd, app->buffer, SW_READ_BYTES, 0);
	if (n > 0 ? !take_in(peer, app->buffer, (size_t)n) : !n || !would_block())
		disconnect(peer);
}

/* The pieces of the next system call: the rest of a frame, then those that are due. */
static int collect(const struct sw_peer *peer, struct iovec *piece)
{
	const struct sw_port *port = peer->port;
	struct fab_frame *frame = peer->part;
	size_t written = peer->part_written, due = 0;
	int num = 0;

	if (!frame)
		frame = fab_port_due(port->app->model, port->number, due++);
	while (frame && num < MAX_PIECES) {
		piece[num++] = (struct iovec){
			.iov_base = frame->head + written,
			.iov_len = SW_STREAM_HEAD + frame->len - written,
		};
		written = 0;
		frame = fab_port_due(port->app->model, port->number, due++);
	}
	return num;
}

/* So many bytes of the pieces have been written. */
static void account(struct sw_peer *peer, size_t bytes)
{
	struct sw_port *port = peer->port;
	size_t left;

	while (bytes) {
		if (!peer->part) {
			peer->part = fab_port_sent(port->app->model, port->number);
			peer->part_written = 0;
		}
		left = SW_STREAM_HEAD + peer->part->len - peer->part_written;
		if (bytes < left) {
			peer->part_written += bytes;
			return;
		}
		bytes -= left;
		fab_frame_put(peer->part);
		peer->part = NULL;
		peer->part_written = 0;
	}
}

/* Sends what is due until the socket takes no more. */
static void flush_peer(struct sw_peer *peer)
{
	struct iovec piece[MAX_PIECES];
	struct msghdr msg = { .msg_iov = piece };
	ssize_t n;
	int num;

	while (!peer->full && (num = collect(peer, piece))) {
		msg.msg_iovlen = (size_t)num;
		n = sendmsg(peer->source.fd, &msg, MSG_NOSIGNAL);
		if (n >= 0) {
			account(peer, (size_t)n);
		} else if (would_block()) {
			peer->full = errno != EINTR;
		} else {
			disconnect(peer);
			return;
		}
	}
	sw_loop_wait_for(&peer->port->app->loop, &peer->source,
			 EPOLLIN | (peer->full ? EPOLLOUT : 0u));
}

void sw_peers_flush(struct sw_app *app)
{
	for (unsigned int i = 0; i < app->opt->config.ports; i++)
		if (app->port[i] && app->port[i]->peer)
			flush_peer(app->port[i]->peer);
}

static void peer_ready(struct sw_source *source, uint32_t events)
{
	struct sw_peer *peer = (struct sw_peer *)source;

	if (events & EPOLLOUT)
		peer->full = false;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_some(peer);
}

static struct sw_peer *peer_new(struct sw_port *port, int fd)
{
	struct sw_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->source.fd = fd;
	peer->source.ready = peer_ready;
	peer->port = port;
	if (sw_loop_add(&port->app->loop, &peer->source, EPOLLIN)) {
		free(peer);
		return NULL;
	}
	return peer;
}

void sw_peer_accepted(struct sw_listener *listener, int fd)
{
	struct sw_app *app = listener->app;
	struct sw_port *port = listener->port;

	if (port && port->peer) {
		port->count.refused++;
		close(fd);
		return;
	}
	if (!port)
		port = sw_port_add(app, NULL, &app->opt->defaults, false);
	if (port)
		port->peer = peer_new(port, fd);
	if (!port || !port->peer) {
		close(fd);
		if (port && !port->permanent)
			sw_port_remove(port);
		return;
	}
	port->count.connections++;
	fab_port_set_peer(app->model, port->number, true);
}
