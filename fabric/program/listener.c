// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Unix sockets that peers and control connections come to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "program/app.h"

#define BACKLOG		SOMAXCONN
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif
/* How long a listener waits that could not take a connection, ns. */
#define PAUSE		1000000000ull

static void listener_ready(struct sw_source *source, uint32_t events)
{
	struct sw_listener *listener = (struct sw_listener *)source;
	struct sw_app *app = listener->app;
	int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd >= 0) {
		listener->accepted(listener, fd);
		return;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return;
	/* The connection stays with the kernel, which would report it again at once. */
	fprintf(stderr, "qhca-switch: %s: %s\n", listener->path, strerror(errno));
	sw_loop_wait_for(&app->loop, source, 0);
	app->resume = sw_loop_now(&app->loop) + PAUSE;
}

void sw_listeners_resume(struct sw_app *app)
{
	app->resume = FAB_NEVER;
	for (struct sw_listener *l = app->listeners; l; l = l->next)
		sw_loop_wait_for(&app->loop, &l->source, EPOLLIN);
}

/* Does anybody listen at the socket? */
static bool is_alive(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool alive;

	if (fd < 0)
		return true;
	alive = !connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
		errno != ECONNREFUSED;
	close(fd);
	return alive;
}

/*
 * Binds to the path.  A socket that a program of the same user has left behind is in the way
 * no longer; one of another user's is not ours to remove.
 */
static const char *bind_to(int fd, const struct sockaddr_un *address)
{
	const struct sockaddr *any = (const struct sockaddr *)address;
	struct stat st;

	if (!bind(fd, any, sizeof(*address)))
		return NULL;
	if (errno != EADDRINUSE)
		return strerror(errno);
	if (lstat(address->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return "a file is there that is no socket";
	if (st.st_uid != geteuid())
		return "a socket of another user is there";
	if (is_alive(address))
		return "another program listens there";
	if (unlink(address->sun_path) || bind(fd, any, sizeof(*address)))
		return strerror(errno);
	return NULL;
}

/*
 * Have the kernel refuse descriptors that peers send.  The sockets that accept() makes
 * inherit this.  Closing a received descriptor can take as long as the peer likes: it may
 * be of a TCP socket with SO_LINGER, for example.  Linux before 6.16 cannot refuse them.
 */
static void refuse_descriptors(int fd)
{
	const int no = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
}

/* Removes the socket, and not what somebody has put in its place. */
static void remove_socket(const struct sw_listener *l)
{
	struct stat st;

	if (!lstat(l->path, &st) && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
}

static const char *open_socket(struct sw_listener *l)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *why;
	struct stat st;

	if (!*l->path)
		return "the path of a socket is empty";
	if (strlen(l->path) >= sizeof(address.sun_path))
		return "the path of a socket has at most 107 characters";
	strcpy(address.sun_path, l->path);
	l->source.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->source.fd < 0)
		return strerror(errno);
	refuse_descriptors(l->source.fd);
	why = bind_to(l->source.fd, &address);
	if (why)
		return why;
	if (!lstat(l->path, &st)) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	if (listen(l->source.fd, BACKLOG) ||
	    sw_loop_add(&l->app->loop, &l->source, EPOLLIN)) {
		why = strerror(errno);
		remove_socket(l);
	}
	return why;
}

int sw_listen(struct sw_app *app, const char *path, struct sw_port *port,
	      void (*accepted)(struct sw_listener *listener, int fd))
{
	struct sw_listener *l = calloc(1, sizeof(*l));
	const char *why;

	if (!l) {
		fprintf(stderr, "qhca-switch: %s: there is no memory\n", path);
		return -1;
	}
	l->source.fd = -1;
	l->source.ready = listener_ready;
	l->app = app;
	l->accepted = accepted;
	l->port = port;
	l->path = path;
	why = open_socket(l);
	if (why) {
		fprintf(stderr, "qhca-switch: %s: %s\n", path, why);
		if (l->source.fd >= 0)
			close(l->source.fd);
		free(l);
		return -1;
	}
	l->next = app->listeners;
	app->listeners = l;
	return 0;
}

void sw_listeners_close(struct sw_app *app)
{
	struct sw_listener *l, *next;

	for (l = app->listeners; l; l = next) {
		next = l->next;
		remove_socket(l);
		sw_loop_close(&app->loop, &l->source);
	}
	app->listeners = NULL;
}
