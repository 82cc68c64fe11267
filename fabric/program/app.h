/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program around the model: its ports, its sockets, its state. One thread has it
 * all, so there are no locks.
 */
#ifndef QHCA_FABRIC_APP_H
#define QHCA_FABRIC_APP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/fabric.h"
#include "program/loop.h"
#include "program/options.h"

struct sw_app;
struct sw_peer;

/* Bytes that are read from a peer before the others have their turn. */
#define SW_READ_BYTES	(256u << 10)
/* Control connections at a time. */
#define SW_MAX_CLIENTS	16u

/* Counters of a port that the model does not have. */
#define SW_COUNTERS(X)							\
	X(connections)		/* peers that came */			\
	X(refused)		/* that came while there was one */	\
	X(bad_lengths)		/* whose stream had a length no frame has */ \
	X(no_memory)		/* frames lost for want of memory */

struct sw_counters {
#define SW_MEMBER(name) uint64_t name;
	SW_COUNTERS(SW_MEMBER)
#undef SW_MEMBER
};

/* A port of the model, and its peer. */
struct sw_port {
	struct sw_app *app;
	unsigned int number;		/* in the model */
	bool permanent;			/* it has a socket of its own, and outlives peers */
	struct sw_peer *peer;		/* or NULL */
	struct sw_counters count;
	char name[SW_NAME_LEN + 1];
};

/* A socket that peers or control connections come to. */
struct sw_listener {
	struct sw_source source;
	struct sw_app *app;
	struct sw_listener *next;
	/* Takes the descriptor. */
	void (*accepted)(struct sw_listener *listener, int fd);
	struct sw_port *port;		/* whose peers come here; NULL: each gets its own */
	const char *path;
	dev_t dev;			/* of the socket's file, so that no other is removed */
	ino_t ino;
};

struct sw_app {
	const struct sw_options *opt;
	struct sw_loop loop;
	struct fab_switch *model;
	struct sw_port *port[FAB_MAX_PORTS];	/* by number */
	struct sw_listener *listeners;
	struct sw_client *client[SW_MAX_CLIENTS];	/* control connections, or NULL */
	uint64_t activity;		/* how often any of them was served */
	uint64_t resume;		/* when listeners try again, ns; or FAB_NEVER */
	bool ending;
	uint8_t buffer[SW_READ_BYTES];
};

/*
 * Adds a port with a name. Returns NULL if there are as many ports as there may be, or
 * there is no memory.
 */
struct sw_port *sw_port_add(struct sw_app *app, const char *name,
			    const struct fab_settings *set, bool permanent);
/* Removes a port and its peer. */
void sw_port_remove(struct sw_port *port);
/* The port with the name, or NULL. */
struct sw_port *sw_port_find(const struct sw_app *app, const char *name);

/* A peer has come to a listener: it becomes the peer of a port, or is refused. */
void sw_peer_accepted(struct sw_listener *listener, int fd);
/* Sends what is due to all peers that take it. */
void sw_peers_flush(struct sw_app *app);

/*
 * Listens at a path; returns 0, or -1 after a message that says why not. @path must
 * last as long as the program. A socket that nobody listens at is replaced.
 */
int sw_listen(struct sw_app *app, const char *path, struct sw_port *port,
	      void (*accepted)(struct sw_listener *listener, int fd));
/* Has listeners try again that could not take a connection. */
void sw_listeners_resume(struct sw_app *app);
/* Ends all listeners and removes their sockets. */
void sw_listeners_close(struct sw_app *app);

/* A control connection has come. */
void sw_control_accepted(struct sw_listener *listener, int fd);

#endif /* QHCA_FABRIC_APP_H */
