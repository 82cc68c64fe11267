/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Address handles.  The provider keeps the address vector and copies it into
 * each datagram's work request.  The kernel only resolves the next hop's MAC
 * address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qhca.h"
#include "qhca-abi.h"

static void fill_av(struct qhca_av *av, const struct ibv_ah_attr *attr,
		    const uint8_t *dmac)
{
	const struct ibv_global_route *grh = &attr->grh;
	uint32_t flow_label = grh->flow_label & 0xfffff;

	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	memcpy(av->dmac, dmac, sizeof(av->dmac));
	av->sgid_index = grh->sgid_index;
	av->hop_limit = grh->hop_limit;
	av->traffic_class = grh->traffic_class;
	av->sl = attr->sl;
	av->flow_label = htole32(flow_label);
	if (flow_label)
		av->udp_sport = htole16(ibv_flow_label_to_udp_sport(flow_label));
}

struct ibv_ah *qhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct qhca_ucmd_create_ah_resp resp = {};
	struct qhca_ah *ah;

	/* On Ethernet an address needs a GRH. */
	if (!attr->is_global) {
		errno = EINVAL;
		return NULL;
	}

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	if (ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.ibv_resp,
			      sizeof(resp))) {
		free(ah);
		return NULL;
	}

	fill_av(&ah->av, attr, resp.dmac);
	return &ah->ah;
}

int qhca_destroy_ah(struct ibv_ah *ibah)
{
	int ret;

	ret = ibv_cmd_destroy_ah(ibah);
	if (ret)
		return ret;
	free(to_qah(ibah));
	return 0;
}
