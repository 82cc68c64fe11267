/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of MAC addresses: behind which port each one was seen last.
 *
 * An address stays for the ageing time after the last frame that came from it. The
 * entries are a list by that time, so that those which have aged are at its front, and
 * a hash table with a secret key, so that no sender can choose addresses that collide.
 *
 * The number of entries is fixed, and each port has a limit, so that a port from which
 * frames with random addresses come does not push out the addresses of other ports. An
 * address that is not learned is not lost: frames to it are flooded.
 *
 * VLANs share the table (IEEE 802.1Q, shared VLAN learning).
 */
#ifndef QHCA_FABRIC_MAC_TABLE_H
#define QHCA_FABRIC_MAC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAB_MAX_MACS	65536u

struct fab_mac_entry {
	uint64_t mac;			/* fab_mac_word() */
	uint64_t seen;			/* when a frame came from it last, ns */
	uint32_t chain;			/* the next one of the same hash */
	uint32_t older, newer;		/* neighbours in the list by time */
	uint16_t port;
};

struct fab_mac_table {
	struct fab_mac_entry *entry;
	uint32_t *bucket;		/* first entry of each hash */
	uint32_t *of_port;		/* number of entries of each port */
	uint64_t key[2];
	uint64_t age;			/* ns */
	uint32_t size, num;
	uint32_t oldest, newest;
	uint32_t free;			/* list by @chain */
	unsigned int log_buckets;
};

enum fab_learned {
	FAB_LEARNED_KNOWN,		/* it was behind that port already */
	FAB_LEARNED_NEW,
	FAB_LEARNED_MOVED,		/* it was behind another port */
	FAB_LEARNED_REFUSED,		/* the port or the table is at its limit */
};

/* The six bytes of an address as a number. */
uint64_t fab_mac_word(const uint8_t mac[6]);
/* The reverse of fab_mac_word(). */
void fab_mac_bytes(uint64_t word, uint8_t mac[6]);

/*
 * Makes a table of @size entries, 1 to FAB_MAX_MACS, for ports below @ports; addresses
 * stay for @age ns. @seed is that of the hash. Returns false if there is no memory;
 * fab_mac_table_fini() may then be called or not.
 */
bool fab_mac_table_init(struct fab_mac_table *t, uint32_t size, uint32_t ports,
			uint64_t age, uint64_t seed);
/* Frees what the table has. */
void fab_mac_table_fini(struct fab_mac_table *t);

/*
 * A frame came from @mac through @port at @now, ns, which is never before the time of
 * an earlier call. The port may have @limit entries.
 */
enum fab_learned fab_mac_table_learn(struct fab_mac_table *t, uint64_t mac,
				     uint16_t port, uint32_t limit, uint64_t now);
/* The port behind which @mac is, or -1 if that is unknown at @now, ns. */
int fab_mac_table_find(struct fab_mac_table *t, uint64_t mac, uint64_t now);
/* Removes all addresses of a port. */
void fab_mac_table_forget(struct fab_mac_table *t, uint16_t port);
/* Removes the addresses that have aged at @now, ns. */
void fab_mac_table_expire(struct fab_mac_table *t, uint64_t now);
/*
 * The entry that was seen next after @entry, or for NULL the one seen longest ago; NULL
 * at the end. The table must not change in between.
 */
const struct fab_mac_entry *
fab_mac_table_next(const struct fab_mac_table *t, const struct fab_mac_entry *entry);

#endif /* QHCA_FABRIC_MAC_TABLE_H */
