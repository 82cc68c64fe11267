/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The embedded switch: which functions get a frame, and which frames a function may
 * send (hardware.rst, "Embedded switch" and "Properties of a virtual function").
 *
 * Inside the switch a frame is as on the wire: with the tag of a VF that has one.  The
 * tag comes on where the VF sends, and off where it receives.
 *
 * Each function publishes its addresses in struct hca_switch when they change
 * (hca_ports_publish()), so that a frame is compared with one array, and with the GIDs
 * of those functions alone whose GIDs have a MAC of their own.
 */
#ifndef HCA_CORE_SWITCH_H
#define HCA_CORE_SWITCH_H

#include "qhca.h"

struct hca;
struct hca_fn;

struct hca_switch {
	bool vfs_kept_off;		/* they have no settings yet: hca_vfs_forget() */
	uint64_t fns;			/* enabled, bit by GVMI */
	uint64_t smacs;			/* that have GIDs with a MAC of their own */
	uint64_t promisc;		/* that receive what nobody owns */
	uint64_t mac[QHCA_MAX_VFS + 1];	/* current: hca_mac_word() */
	uint8_t claim[QHCA_MAX_VFS + 1]; /* to it: enum hca_mac_claim */
};

/*
 * Several functions may have one address: the software of a virtual function may choose
 * its own if the host domain has laid down none.  So the best claim wins, and no
 * function takes frames from another whose address it imitates.
 */
enum hca_mac_claim {
	HCA_MAC_CHOSEN,			/* by the function's software */
	HCA_MAC_PERMANENT,
	HCA_MAC_ASSIGNED,		/* by the host domain, or its own */
};

static inline uint64_t hca_mac_word(const uint8_t mac[6])
{
	uint64_t word = 0;

	memcpy(&word, mac, 6);
	return word;
}

/* Is the physical function the only one?  Then frames pass by the switch. */
static inline bool hca_switch_idle(const struct hca_switch *sw)
{
	return sw->fns == 1;
}

struct hca_route {
	uint64_t fns;			/* functions that get the frame */
	bool wire;
};

/* Where a frame goes that @from sends, or NULL: the wire.  @len >= HCA_ETH_HLEN. */
void hca_switch_route(const struct hca *hca, const struct hca_fn *from,
		      const uint8_t *frame, size_t len, struct hca_route *r);
/* The function that owns the source address of a frame from the wire, or NULL. */
struct hca_fn *hca_switch_source(const struct hca *hca, const uint8_t *frame,
				 size_t len);

/*
 * Is the address that of a function of this device, for one that sends to it?  @vlan: of
 * the path, HCA_VLAN_NONE: untagged.
 */
bool hca_switch_is_local(const struct hca_fn *from, const uint8_t mac[6],
			 uint16_t vlan);

/*
 * May @fn send the frame, which does not have the VF's tag yet?  Counts what it
 * refuses.  @free: the frame's headers are software's, and not the transport's.
 */
bool hca_switch_admit(struct hca_fn *fn, const uint8_t *frame, size_t len,
		      bool free);

/* Bytes that the tag of @fn takes. */
size_t hca_switch_tag_len(const struct hca_fn *fn);
/*
 * Put the tag of @fn, if it has one, into the frame, before which there is room for it.
 * Returns where the frame begins now.
 */
uint8_t *hca_switch_tag(const struct hca_fn *fn, uint8_t *frame);
/* Does the frame have the tag of @fn? */
bool hca_switch_has_tag(const struct hca_fn *fn, const uint8_t *frame,
			size_t len);
/* Copy a frame that has the tag of @fn to @to, without the tag; the new length. */
size_t hca_switch_untag(const uint8_t *frame, size_t len, uint8_t *to);

#endif /* HCA_CORE_SWITCH_H */
