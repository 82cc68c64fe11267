// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* GIDs and address vectors */
#include "internal.h"

#include <string.h>

#include "bytes.h"

void md_make_gid(uint8_t gid[16], unsigned int number, uint8_t net, bool v6)
{
	memset(gid, 0, 16);
	if (v6) {
		gid[0] = 0xfe;
		gid[1] = 0x80;
	} else {
		gid[10] = gid[11] = 0xff;
		gid[12] = 10;
	}
	gid[13] = net;
	gid[15] = number;
}

int md_set_gid(struct md *md, uint32_t index, uint8_t net, bool v6,
	       uint16_t vlan)
{
	struct qhca_gid_entry gid = { 0 };

	md_make_gid(gid.gid, md->mac[5], net, v6);
	memcpy(gid.smac, md->mac, 6);
	put_le16(&gid.vlan, vlan);
	put_le32(&gid.flags, QHCA_GID_VALID | (v6 ? 0 : QHCA_GID_IPV4));
	return md_cmd(md, QHCA_CMD_SET_GID, index, 0, &gid, sizeof(gid), NULL,
		      0, NULL);
}

void md_av_net(const struct md *md, struct qhca_av *av, unsigned int number,
	       uint32_t index, uint8_t net, bool v6)
{
	memset(av, 0, sizeof(*av));
	memcpy(av->dmac, md->mac, 6);
	av->dmac[5] = number;
	md_make_gid(av->dgid, number, net, v6);
	av->sgid_index = index;
	av->hop_limit = 64;
}

void md_av(const struct md *md, struct qhca_av *av, unsigned int number,
	   bool v6)
{
	md_av_net(md, av, number, v6, 0, v6);
}
