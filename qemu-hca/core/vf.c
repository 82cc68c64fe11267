// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands of the host domain that concern a virtual function: its settings, its state
 * and its counters.
 */
#include "vf.h"

#include "hca.h"

#define ALL_FIELDS	(QHCA_VF_SET_MAC | QHCA_VF_SET_VLAN | QHCA_VF_SET_LINK | \
			 QHCA_VF_SET_SPOOFCHK | QHCA_VF_SET_TRUST | \
			 QHCA_VF_SET_RATE | QHCA_VF_SET_BLOCKS)
#define MAX_VLAN	4094
#define MAX_QOS		7

/* May a frame that was sent or received under @a be wrong under @b? */
static bool frames_differ(const struct hca_vf *a, const struct hca_vf *b)
{
	return a->vlan != b->vlan || a->qos != b->qos || a->link != b->link ||
	       (a->flags ^ b->flags) & QHCA_VF_SPOOFCHK ||
	       memcmp(a->mac, b->mac, sizeof(a->mac));
}

bool hca_vf_valid(const struct hca_vf *vf)
{
	return !(vf->mac[0] & 1) && vf->vlan <= MAX_VLAN && vf->qos <= MAX_QOS &&
	       vf->link <= QHCA_VF_LINK_DOWN &&
	       !(vf->flags & ~(QHCA_VF_SPOOFCHK | QHCA_VF_TRUST)) &&
	       (!vf->max_rate || vf->min_rate <= vf->max_rate);
}

void hca_vf_load(struct hca_fn *fn, const struct hca_vf *vf)
{
	fn->vf = *vf;
	hca_ports_assign(fn);
	hca_caches_limit(fn, vf->blocks);
	hca_rate_set(fn, vf->max_rate, vf->min_rate);
}

/* Other settings apply from now on: the switch and software hear of them. */
static void change(struct hca_fn *fn, const struct hca_vf *vf)
{
	uint32_t link = hca_link_word(fn);

	if (frames_differ(&fn->vf, vf))
		hca_inject_forget(fn);
	hca_peers_forget(fn);
	hca_vf_load(fn, vf);
	if (hca_link_word(fn) != link)
		hca_event(fn, QHCA_EVENT_PORT_CHANGE, 1, hca_link_word(fn));
}

void hca_vf_forget(struct hca_fn *fn)
{
	static const struct hca_vf pf = { .flags = QHCA_VF_TRUST };
	static const struct hca_vf vf = { .flags = QHCA_VF_SPOOFCHK };

	change(fn, fn == hca_pf(fn->hca) ? &pf : &vf);
	memset(fn->past, 0, sizeof(fn->past));
}

void hca_vfs_forget(struct hca *hca)
{
	hca->sw.vfs_kept_off = true;
	for (uint16_t gvmi = 1; gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi])
			hca_vf_forget(hca->fn[gvmi]);
}

void hca_vfs_admit(struct hca *hca)
{
	if (!hca->sw.vfs_kept_off)
		return;
	hca->sw.vfs_kept_off = false;
	for (uint16_t gvmi = 1; gvmi < HCA_MAX_FNS; gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];

		if (fn && hca_link_word(fn) & QHCA_LINK_UP)
			hca_event(fn, QHCA_EVENT_PORT_CHANGE, 1,
				  hca_link_word(fn));
	}
}

void hca_vf_count_on(struct hca_fn *fn)
{
	for (unsigned int i = 0; i < QHCA_NUM_COUNTERS; i++)
		fn->past[i] += fn->counter[i];
}

/* Does a cache have none of the blocks that @in leaves the function? */
static bool blocks_missing(const struct hca *hca,
			   const struct qhca_vf_config *in)
{
	for (unsigned int i = 0; i < QHCA_NUM_CACHE_IDS; i++) {
		struct qhca_geometry geometry =
			hca_caches_geometry(hca, (enum qhca_cache_id)i);
		uint32_t mask = get_le16(&in->blocks[i]);

		/* A mask has 16 bits, a cache may have more blocks. */
		if (mask && geometry.blocks < 16 &&
		    !(mask & ((1u << geometry.blocks) - 1)))
			return true;
	}
	return false;
}

#define BAD(field) hca_cmd_bad(ctx, offsetof(struct qhca_vf_config, field))

/* Take the fields that apply from @in to @vf. */
static enum qhca_cmd_status take(const struct hca *hca, struct hca_cmd_ctx *ctx,
				 struct hca_vf *vf)
{
	const struct qhca_vf_config *in = (const void *)ctx->in;
	uint32_t fields = get_le32(&in->fields);
	uint16_t flags = get_le16(&in->flags), set = 0;

	if (fields & ~ALL_FIELDS)
		return BAD(fields);
	if (fields & QHCA_VF_SET_MAC && in->mac[0] & 1)
		return BAD(mac);
	if (fields & QHCA_VF_SET_VLAN && get_le16(&in->vlan) > MAX_VLAN)
		return BAD(vlan);
	if (fields & QHCA_VF_SET_VLAN && in->qos > MAX_QOS)
		return BAD(qos);
	if (fields & QHCA_VF_SET_LINK && in->link > QHCA_VF_LINK_DOWN)
		return BAD(link);
	if (flags & ~(QHCA_VF_SPOOFCHK | QHCA_VF_TRUST))
		return BAD(flags);
	if (fields & QHCA_VF_SET_RATE && get_le32(&in->max_rate) &&
	    get_le32(&in->min_rate) > get_le32(&in->max_rate))
		return BAD(min_rate);
	if (fields & QHCA_VF_SET_BLOCKS && blocks_missing(hca, in))
		return BAD(blocks);

	if (fields & QHCA_VF_SET_MAC)
		memcpy(vf->mac, in->mac, sizeof(vf->mac));
	if (fields & QHCA_VF_SET_VLAN) {
		vf->vlan = get_le16(&in->vlan);
		vf->qos = in->qos;
	}
	if (fields & QHCA_VF_SET_LINK)
		vf->link = in->link;
	if (fields & QHCA_VF_SET_SPOOFCHK)
		set |= QHCA_VF_SPOOFCHK;
	if (fields & QHCA_VF_SET_TRUST)
		set |= QHCA_VF_TRUST;
	vf->flags = (uint16_t)((vf->flags & ~set) | (flags & set));
	if (fields & QHCA_VF_SET_RATE) {
		vf->max_rate = get_le32(&in->max_rate);
		vf->min_rate = get_le32(&in->min_rate);
	}
	for (unsigned int i = 0;
	     fields & QHCA_VF_SET_BLOCKS && i < QHCA_NUM_CACHE_IDS; i++)
		vf->blocks[i] = get_le16(&in->blocks[i]);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_set_vf(struct hca_fn *fn, struct hca_cmd_ctx *ctx)
{
	struct hca_fn *of = hca_fn_of(fn->hca, (uint16_t)ctx->index);
	struct hca_vf vf = of->vf;
	enum qhca_cmd_status status = take(fn->hca, ctx, &vf);

	if (status == QHCA_CMD_OK)
		change(of, &vf);
	return status;
}

static void fill_config(const struct hca_vf *vf, struct qhca_vf_config *out)
{
	memcpy(out->mac, vf->mac, sizeof(out->mac));
	put_le16(&out->vlan, vf->vlan);
	out->qos = vf->qos;
	out->link = vf->link;
	put_le16(&out->flags, vf->flags);
	put_le32(&out->max_rate, vf->max_rate);
	put_le32(&out->min_rate, vf->min_rate);
	for (unsigned int i = 0; i < QHCA_NUM_CACHE_IDS; i++)
		put_le16(&out->blocks[i], vf->blocks[i]);
}

enum qhca_cmd_status hca_cmd_query_vf(struct hca_fn *fn, struct hca_cmd_ctx *ctx)
{
	const struct hca_fn *of = hca_fn_of(fn->hca, (uint16_t)ctx->index);
	struct qhca_vf_state *out = (void *)ctx->out;

	fill_config(&of->vf, &out->config);
	put_le32(&out->status, of->enabled ? of->status : ~0u);
	put_le32(&out->link, hca_link_word(of));
	memcpy(out->mac, of->port.mac, sizeof(out->mac));
	put_le32(&out->generation, of->generation);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_query_vf_counters(struct hca_fn *fn,
					       struct hca_cmd_ctx *ctx)
{
	const struct hca_fn *of = hca_fn_of(fn->hca, (uint16_t)ctx->index);
	uint32_t i, n = ctx->out_len / 8;

	if (ctx->param >= QHCA_NUM_COUNTERS)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	for (i = 0; i < n && ctx->param + i < QHCA_NUM_COUNTERS; i++)
		put_le64(ctx->out + i * 8, of->past[ctx->param + i] +
			 of->counter[ctx->param + i]);
	return QHCA_CMD_OK;
}
