/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The model of an Ethernet switch: a transparent bridge (IEEE 802.1D, 802.1Q) whose
 * ports have a rate, a latency and a queue.
 *
 * A frame that comes through a port teaches the switch where its source is, and goes to
 * the port of its destination, or, if the destination is unknown or a group, to all
 * other ports. Each port has a queue, which drops a frame that would make the port hold
 * more bytes than it may. A frame leaves the queue at the port's rate (shaper.h), is on
 * the way for the port's latency, and then is due: the caller takes it.
 *
 *	fab_receive() -> queue -> rate -> latency -> fab_port_due(), fab_port_sent()
 *
 * The model has no clock, no sockets and no threads. The caller says what time it is
 * (fab_advance()) and asks when something happens next (fab_deadline()), so that a
 * switch in real time and one in a simulation are the same, and equal calls have equal
 * results. All calls for a switch come from one thread.
 *
 * A caller that takes frames late, because a peer does not read, leaves them with the
 * port. They count against its limit until the caller takes them.
 */
#ifndef QHCA_FABRIC_FABRIC_H
#define QHCA_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backlog.h"
#include "frame.h"
#include "mac_table.h"
#include "shaper.h"

#define FAB_MAX_PORTS	256u
#define FAB_NEVER	UINT64_MAX

#define FAB_MAX_LATENCY	10000000000ull		/* ns */
#define FAB_MIN_QUEUE	69656ull		/* bytes: the longest frame on the wire */
#define FAB_MAX_QUEUE	(1ull << 30)
#define FAB_MIN_AGE	1000000000ull		/* ns */
#define FAB_MAX_AGE	1000000000000000ull

/* The values of a switch whose user chooses none. */
#define FAB_DEFAULT_PORTS	64u
#define FAB_DEFAULT_TABLE	4096u
#define FAB_DEFAULT_AGE		300000000000ull	/* ns; 802.1D recommends it */
#define FAB_DEFAULT_QUEUE	(16ull << 20)
#define FAB_DEFAULT_MACS	256u

/*
 * Counters of a port. Each frame that comes adds to rx_frames and rx_bytes, and then
 * has at most one reason not to be forwarded.
 */
#define FAB_COUNTERS(X)							\
	X(rx_frames)		/* frames that came */			\
	X(rx_bytes)		/* their lengths */			\
	X(rx_runts)		/* shorter than an Ethernet header */	\
	X(rx_link_down)		/* came while the link was down */	\
	X(rx_bad_source)	/* a group or zero sent it */		\
	X(rx_link_local)	/* to 01:80:c2:00:00:00 to 0f */	\
	X(rx_own_side)		/* destination is behind the port */	\
	X(rx_flooded)		/* went to all other ports */		\
	X(tx_frames)		/* frames that the caller took */	\
	X(tx_bytes)		/* their lengths */			\
	X(tx_queue_full)	/* dropped at the tail of the queue */	\
	X(tx_link_down)		/* held when link or peer went away */		\
	X(macs_learned)		/* new addresses behind the port */	\
	X(macs_moved)		/* came here from another port */	\
	X(macs_refused)		/* frames whose source was not learned */

struct fab_counters {
#define FAB_MEMBER(name) uint64_t name;
	FAB_COUNTERS(FAB_MEMBER)
#undef FAB_MEMBER
};

/* What a user may choose for a port at any time. */
struct fab_settings {
	uint64_t rate;			/* bit/s towards the peer; 0: no limit */
	uint64_t burst;			/* depth of the token bucket, bytes */
	uint64_t latency;		/* ns */
	uint64_t queue;			/* bytes on the wire that the port may hold */
	uint32_t macs;			/* addresses that are learned behind it */
	bool link;			/* false: no frame passes */
};

/* What a user chooses for a switch. */
struct fab_config {
	uint32_t ports;			/* at most so many; up to FAB_MAX_PORTS */
	uint32_t table;			/* entries of the MAC table; up to FAB_MAX_MACS */
	uint64_t age;			/* of its entries, ns */
	uint64_t seed;			/* of its hash */
};

struct fab_port {
	struct fab_settings set;
	bool exists;
	bool peer;			/* somebody takes the frames */
	struct fab_shaper shaper;
	struct fab_backlog backlog;
	uint64_t earliest;		/* for the next frame to leave the queue, ns */
	uint64_t leaves;		/* the frame that has waited longest; or FAB_NEVER */
	uint64_t peak;			/* most bytes held since the counters were cleared */
	struct fab_counters count;
};

struct fab_switch {
	struct fab_config cfg;
	uint64_t now;			/* ns */
	struct fab_mac_table table;
	struct fab_port *port;		/* cfg.ports of them */
};

/* Fills in what a user does not choose. */
void fab_config_default(struct fab_config *cfg);
void fab_settings_default(struct fab_settings *set);
/* NULL, or a sentence that says what is wrong with them. */
const char *fab_config_wrong(const struct fab_config *cfg);
const char *fab_settings_wrong(const struct fab_settings *set);

/* A switch without ports, or NULL if there is no memory. @cfg has nothing wrong. */
struct fab_switch *fab_switch_new(const struct fab_config *cfg);
void fab_switch_free(struct fab_switch *sw);

/* Adds a port without a peer; its number, the lowest that is free, or -1: none is. */
int fab_port_add(struct fab_switch *sw, const struct fab_settings *set);
/* Removes a port with all that it holds, and the addresses behind it. */
void fab_port_remove(struct fab_switch *sw, unsigned int port);
/*
 * Somebody takes the port's frames from now on, or nobody does. Without a peer the port
 * drops its frames, and the addresses behind it are forgotten.
 */
void fab_port_set_peer(struct fab_switch *sw, unsigned int port, bool peer);
/*
 * Changes the settings, which have nothing wrong. A link that goes down drops the
 * port's frames. A new rate or latency is that of frames which leave the queue later; a
 * new queue is that of frames which come later.
 */
void fab_port_set(struct fab_switch *sw, unsigned int port,
		  const struct fab_settings *set);
/* Sets the port's counters to 0. */
void fab_port_clear(struct fab_switch *sw, unsigned int port);

/*
 * A frame of 0 to FAB_MAX_FRAME bytes came through a port that has a peer. The switch
 * takes the reference.
 */
void fab_receive(struct fab_switch *sw, unsigned int port, struct fab_frame *frame);

/* It is @now, ns; an earlier time than before is taken for that. */
void fab_advance(struct fab_switch *sw, uint64_t now);
/*
 * When the caller should call fab_advance() next: when a frame leaves a queue, or the
 * first of those on the way is due. FAB_NEVER if that waits for nothing.
 */
uint64_t fab_deadline(const struct fab_switch *sw);

/*
 * The frame that is due with @index others before it, or NULL; the frame is the port's.
 * Frames keep their order, so the caller asks for them from 0 on and stops at NULL: after
 * the latency has become smaller, a frame may seem due before the one that precedes it.
 */
struct fab_frame *fab_port_due(const struct fab_switch *sw, unsigned int port,
			       size_t index);
/* The caller has sent the first frame that is due, and may still use it: takes it. */
struct fab_frame *fab_port_sent(struct fab_switch *sw, unsigned int port);

#endif /* QHCA_FABRIC_FABRIC_H */
