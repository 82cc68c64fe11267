/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Peers that take bundles.
 *
 * A device sends bundles (bundle.h) only to a GID whose device has told it, along this very
 * path, that a frame of that size came through whole.  It asks when it has a message of
 * several packets for a GID that it knows nothing about.  Large segments of TCP
 * (large_segment.h) are for a MAC address, and the GID in question is 0, which no port has:
 *
 *	ASK	how much I would send in a frame; the peer, if it is a qhca that has the GID,
 *		answers with
 *	OFFER	how much of that it takes;
 *	PROBE	a frame of that size;
 *	HEARD	the answer to it.
 *
 * All of them are Ethernet frames of a local experimental type, of which everybody else
 * sees ASK alone: a short frame that is ignored.  But a PROBE without a GID is a packet of IP
 * with something behind it, which a path may take away, as large segments are.  Until HEARD
 * comes packets go one by one.
 *
 * An agreement is renewed while it is used, and ends if that fails; for packets whose loss
 * the device may not notice there is a PROBE each time.  When others are lost it waits
 * before it asks anew, longer each time: on a path that loses many, packets are better.
 * What is known ends with the link and with the function's settings, and none of it travels
 * with an image.
 */
#ifndef HCA_CORE_PEERS_H
#define HCA_CORE_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;
struct hca_fn;
struct hca_path;

#define HCA_ETHERTYPE_PEERS	0x88b5	/* IEEE 802, local experimental 1 */
#define HCA_PEERS		32	/* places, of which a GID may have HCA_PEERS_WAYS */
#define HCA_PEERS_WAYS		4
#define HCA_PEERS_WITHOUT_GID	16	/* more places, of which likewise a MAC address */
#define HCA_PEERS_OWED		8	/* messages that wait for room in the link */
/* An agreement is renewed so often, and ends so long after the last HEARD. */
#define HCA_PEERS_AGAIN_NS	500000000ull
#define HCA_PEERS_HOLD_NS	2000000000ull
/* So long the place of a peer that is in use belongs to nobody else. */
#define HCA_PEERS_USE_NS	1000000000ull
/* After a question without an answer it waits so long, and twice as long each time. */
#define HCA_PEERS_ASK_NS	1000000000ull
#define HCA_PEERS_ASK_MAX_NS	64000000000ull
/* ... and so long after packets that were lost. */
#define HCA_PEERS_DOUBT_NS	1000000ull
#define HCA_PEERS_DOUBT_MAX_NS	4096000000ull
/* Connections that follow each other as fast as this ask once. */
#define HCA_PEERS_CONNECT_NS	100000000ull

/**
 * struct hca_peer - what a function knows of a peer
 * @mac: the address that leads to it
 * @vlan: of the path, HCA_VLAN_NONE: untagged
 * @gid: its own; 0: it gets large segments
 * @used: when a message for it began, 0: the place is free
 * @token: of the question that waits for an answer, which has the same; 0: none waits
 * @size: bytes of payload that it takes in a frame; 0: there is no agreement
 * @probed: the size of the PROBE that the question has led to, 0: none
 * @asked: when the last question was sent
 * @heard: when the agreement was last made or renewed; 0: never
 * @ask: when to ask next
 * @silence: how long to wait after a question without an answer, ns
 * @doubt: how long to wait after the next loss, ns
 * @doubted: packets were lost since the agreement before the last
 * @blind: bundles may have gone there of whose loss nobody tells
 * @carried: bundles may have gone there since the last question
 * @proved: ... between the two questions before
 */
struct hca_peer {
	uint8_t mac[6];
	uint16_t vlan;
	uint8_t gid[16];
	uint32_t token, size, probed;
	bool doubted, blind, carried, proved;
	uint64_t used, asked, heard, ask;
	uint64_t silence, doubt;
};

/**
 * struct hca_peer_message - what is said to a peer
 * @head: two addresses
 * @tci: of the tag, HCA_VLAN_NONE: none
 * @kind: ASK, OFFER, PROBE or HEARD
 * @size: bytes of payload in question
 * @token: of the question
 * @gid: that the question is about: the GID of whoever is asked, or 0
 */
struct hca_peer_message {
	uint8_t head[12];
	uint16_t tci;
	uint8_t kind;
	uint32_t size, token;
	uint8_t gid[16];
};

/* A function has its own: it cannot take the places of another's peers. */
struct hca_peers {
	struct hca_peer peer[HCA_PEERS + HCA_PEERS_WITHOUT_GID];
	unsigned int num_owed;
	struct hca_peer_message owed[HCA_PEERS_OWED];
};

/* Of the adapter, since it exists. */
struct hca_bundles {
	uint64_t asked;			/* questions, for the tokens */
	uint64_t sent, received;	/* bundles */
	uint64_t packets_received;	/* of RoCE, in whatever frames */
	uint64_t large_sent, large_received;	/* large segments of TCP */
	uint64_t messages;		/* sent to peers: ASK, OFFER, PROBE, HEARD */
	uint64_t owing;			/* functions that owe messages, bit by GVMI */
	uint16_t turn;			/* whose is next */
};

/*
 * Bytes of payload that the peer at the end of @path takes in one frame, for a message
 * with packets of @each; 0: send packets.  @blind: nobody tells the sender of packets that
 * are lost.  It may send a question.
 */
uint32_t hca_peer_bundle(struct hca_fn *fn, const struct hca_path *path,
			 uint32_t each, bool blind);
/* Packets to the peer were lost, perhaps for their size: if it takes bundles, ask anew. */
void hca_peer_doubt(struct hca_fn *fn, const struct hca_path *path);
/* A QP connects to the peer, which may be another device by now. */
void hca_peer_connect(struct hca_fn *fn, const struct hca_path *path);
/* The function is reset, it has other settings, or the link has changed: forget its peers. */
void hca_peers_forget(struct hca_fn *fn);
/*
 * Take a frame for the function that is one of these messages, which software never gets, be
 * it late or about another GID.  false: it is anything else.
 */
bool hca_peers_rx(struct hca_fn *fn, const uint8_t *frame, size_t len);
/* Send what is owed.  Returns the number of frames, at most @budget. */
unsigned int hca_peers_run(struct hca *hca, unsigned int budget);
bool hca_peers_pending(const struct hca *hca);

#endif /* HCA_CORE_PEERS_H */
