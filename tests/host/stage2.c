// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the host domain does for a function with stage 2: its row, its pages */
#include "host.h"

#include <stdlib.h>

#include "bytes.h"

void host_s2_open(struct host *pf, struct host *vf, uint16_t uplink_attr)
{
	uint64_t pages = vf->ram_len / HOST_PAGE, nodes = (pages + 511) / 512;
	struct qhca_gvm_entry row = { .page_shift = 12, .levels = 2 };

	if (!pf->frames)
		pf->frames = calloc(HOST_MAX_FRAMES, sizeof(*pf->frames));
	vf->s2_root = host_alloc(pf, HOST_PAGE, HOST_PAGE);
	vf->s2_node = host_alloc(pf, nodes * HOST_PAGE, HOST_PAGE);
	vf->s2_attr = uplink_attr;
	for (uint64_t i = 0; i < nodes; i++)
		put_le64(host_ptr(pf, vf->s2_root + 8 * i),
			 (vf->s2_node + i * HOST_PAGE) | QHCA_ATE_PRESENT);
	put_le64(&row.at_base, vf->s2_root);
	put_le16(&row.uplink_attr, uplink_attr);
	put_le32(&row.flags, QHCA_GVM_STAGE2);
	if (host_cmd(pf, QHCA_CMD_SET_GVM, vf->gvmi, 0, &row, sizeof(row), NULL,
		     0))
		host_die("the device refuses SET_GVM");
}

static void *entry_of(struct host *pf, struct host *vf, uint64_t addr)
{
	if (addr >= vf->ram_len)
		host_die("function %u has no page at %#llx", vf->gvmi,
			 (unsigned long long)addr);
	return host_ptr(pf, vf->s2_node + addr / HOST_PAGE * 8);
}

bool host_s2_present(struct host *pf, struct host *vf, uint64_t addr)
{
	return get_le64(entry_of(pf, vf, addr)) & QHCA_ATE_PRESENT;
}

void host_s2_map(struct host *pf, struct host *vf, uint64_t addr, uint64_t bits)
{
	uint32_t i = pf->num_frames++;

	if (i == HOST_MAX_FRAMES)
		host_die("the host domain has no more frames");
	pf->frames[i] = (struct host_frame){ addr & ~(HOST_PAGE - 1ull),
					     vf->gvmi };
	put_le64(entry_of(pf, vf, addr),
		 (HOST_FRAMES + (uint64_t)i * HOST_PAGE) | QHCA_ATE_PRESENT |
		 bits);
}

void host_s2_bits(struct host *pf, struct host *vf, uint64_t addr, uint64_t bits)
{
	void *entry = entry_of(pf, vf, addr);

	put_le64(entry, (get_le64(entry) & QHCA_ATE_ADDR) | QHCA_ATE_PRESENT |
			bits);
}

void host_s2_unmap(struct host *pf, struct host *vf, uint64_t addr)
{
	void *entry = entry_of(pf, vf, addr);
	uint64_t was = get_le64(entry);
	struct qhca_range range = { 0 };

	put_le64(entry, 0);
	put_le64(&range.start, addr & ~(HOST_PAGE - 1ull));
	put_le64(&range.length, HOST_PAGE);
	if (host_cmd(pf, QHCA_CMD_INVALIDATE_STAGE2, vf->gvmi, 0, &range,
		     sizeof(range), NULL, 0))
		host_die("the device refuses INVALIDATE_STAGE2");
	if (was & QHCA_ATE_PRESENT)
		pf->frames[((was & QHCA_ATE_ADDR) - HOST_FRAMES) / HOST_PAGE]
			.gvmi = 0;
}
