/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The port: address, MTU, GID table, multicast members, link state.
 */
#ifndef HCA_CORE_PORT_H
#define HCA_CORE_PORT_H

#include "qhca.h"
#include "handler.h"

#define HCA_MAX_GIDS		256	/* qhca_av.sgid_index is an octet */
#define HCA_LOG_PORT_HASH	9	/* places: twice as many as GIDs */
#define HCA_VLAN_NONE		0xffffu
#define HCA_MIN_ETH_MTU		68	/* bytes of payload */
#define HCA_RX_FLAGS		(QHCA_RX_PROMISC | QHCA_RX_ALLMULTI | \
				 QHCA_RX_ENABLE)

struct hca_gid {
	uint8_t gid[16];
	uint8_t smac[6];
	uint16_t vlan;			/* VLAN id or HCA_VLAN_NONE */
	uint32_t flags;			/* QHCA_GID_* */
};

struct hca_mcast_member {
	uint8_t mgid[16];
	uint32_t qpn;
	bool used;
};

/*
 * Valid entries of the GID table by a hash of what they are looked up by: index + 1; 0:
 * a free place.  An entry whose place is taken is in the next free one.
 */
struct hca_gid_hash {
	uint16_t place[1u << HCA_LOG_PORT_HASH];
};

struct hca_ports {
	uint8_t mac[6];			/* current */
	uint8_t permanent[6];
	bool mac_set;			/* by SET_PORT: the choice of a trusted VF */
	uint32_t eth_mtu;		/* bytes of payload */
	uint32_t rx_flags;		/* QHCA_RX_* */
	struct hca_gid *gid;		/* [cfg.num_gids] */
	uint32_t num_gids_valid;
	uint32_t num_smacs;		/* valid GIDs whose smac is not `mac` */
	unsigned int last_gid;		/* found last: most frames match it */
	struct hca_gid_hash by_gid;	/* ... and VLAN */
	struct hca_gid_hash by_smac;	/* one for each smac that is not `mac` */
	struct hca_mcast_member *member; /* [cfg.max_mcast_members] */
	uint32_t num_members;
	uint32_t qkey_violations;	/* these two saturate */
	uint32_t pkey_violations;
};

bool hca_ports_create(struct hca_fn *fn);	/* false: no memory */
void hca_ports_destroy(struct hca_fn *fn);
void hca_ports_reset(struct hca_fn *fn);
/* TEARDOWN_HCA: GIDs and members go, settings stay. */
void hca_ports_teardown(struct hca_fn *fn);

/*
 * Enter the function's addresses, and whether it is promiscuous, in the switch.  Whoever
 * changes one of them calls this.
 */
void hca_ports_publish(struct hca_fn *fn);
/* QHCA_RX_* that have an effect. */
uint32_t hca_rx_flags(const struct hca_fn *fn);
/*
 * SET_VF has changed the MAC address or the trust: the address that it gave is the
 * current one, unless trusted software has set another.
 */
void hca_ports_assign(struct hca_fn *fn);

/* NULL when @index is out of range or not valid. */
const struct hca_gid *hca_gid_get(const struct hca_fn *fn,
				  unsigned int index);
/* Index of a valid GID on a VLAN (id, or HCA_VLAN_NONE); -1: none. */
int hca_gid_find(struct hca_fn *fn, const uint8_t gid[16], uint16_t vlan);

/* Can the address be that of a function? */
bool hca_mac_usable(const uint8_t mac[6]);
/* May a valid entry be like this?  If not, what is wrong with it. */
enum hca_gid_wrong {
	HCA_GID_OK, HCA_GID_BAD_GID, HCA_GID_BAD_FLAGS, HCA_GID_BAD_SMAC,
	HCA_GID_BAD_VLAN,
};
enum hca_gid_wrong hca_gid_valid(const struct hca_gid *entry);
/* Entries of the table have changed, or the MAC address has. */
void hca_gids_changed(struct hca_fn *fn);

/* Is @gid that of a multicast group? */
bool hca_gid_is_multicast(const uint8_t gid[16]);

/* Is @mac the current MAC or the smac of a valid GID? */
bool hca_mac_is_ours(const struct hca_fn *fn, const uint8_t mac[6]);

/*
 * Call @each for each QP attached to @mgid until it returns false.  Returns
 * whether there was any.  @each must not attach or detach.
 */
bool hca_mcast_for_each(struct hca_fn *fn, const uint8_t mgid[16],
			bool (*each)(struct hca_fn *fn, uint32_t qpn,
				     void *arg),
			void *arg);
bool hca_mcast_any(const struct hca_fn *fn, const uint8_t mgid[16]);
bool hca_mcast_is_member(const struct hca_fn *fn, const uint8_t mgid[16],
			 uint32_t qpn);
/* @qpn is not a member yet.  false: no more than max_mcast_members. */
bool hca_mcast_join(struct hca_fn *fn, const uint8_t mgid[16], uint32_t qpn);
/* @qpn is a member. */
void hca_mcast_leave(struct hca_fn *fn, const uint8_t mgid[16], uint32_t qpn);
/* A QP is being destroyed: forget its memberships. */
void hca_mcast_drop_qp(struct hca_fn *fn, uint32_t qpn);

static inline void hca_port_violation(uint32_t *counter)
{
	if (*counter != UINT32_MAX)
		(*counter)++;
}

uint32_t hca_link_word(const struct hca_fn *fn);	/* QHCA_REG_LINK */

enum qhca_cmd_status hca_cmd_query_port(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_set_port(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_set_gid(struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_PORT_H */
