/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connection of a port to its peer, a QEMU or any other program that speaks the
 * format of stream.h.
 *
 * Nothing that a peer does holds up the others. From each peer the program reads so
 * many bytes a round. A peer that does not read has its frames wait in the model, which
 * drops those beyond the limit of the port. A peer that breaks the format, or that
 * ends, is disconnected, and the port drops what it holds.
 *
 * Once a part of a frame has been written, the rest must follow, whatever becomes of
 * the link in the meantime. So the peer takes such a frame from the model.
 */
#ifndef QHCA_FABRIC_PEER_H
#define QHCA_FABRIC_PEER_H

#include "program/app.h"
#include "program/stream.h"

struct sw_peer {
	struct sw_source source;
	struct sw_port *port;
	struct sw_stream in;
	struct fab_frame *part;		/* a part of it has been written; or NULL */
	size_t part_written;		/* bytes of it, its head included */
	bool full;			/* the socket takes nothing now */
};

/* Ends the connection of a port, which is left without a peer. */
void sw_peer_close(struct sw_peer *peer);

#endif /* QHCA_FABRIC_PEER_H */
