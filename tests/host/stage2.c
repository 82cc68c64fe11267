// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the host domain does for a function with stage 2: its row, its pages */
#include "host.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

static uint64_t num_nodes(const struct host *vf)
{
	return (vf->ram_len / HOST_PAGE + 511) / 512;
}

/* Other work goes on meanwhile, and need not end before the command. */
static void command(struct host *pf, enum qhca_opcode opcode, uint16_t gvmi,
		    const void *in, uint32_t in_len)
{
	uint64_t mark = pf->next, addr = host_alloc(pf, in_len, 64);
	struct qhca_cmd_slot slot = { 0 }, *done;

	memcpy(host_ptr(pf, addr), in, in_len);
	put_le16(&slot.opcode, (uint16_t)opcode);
	put_le32(&slot.index, gvmi);
	put_le64(&slot.in_addr, addr);
	put_le32(&slot.in_len, in_len);
	done = host_cmd_begin(pf, &slot, 0);
	for (int i = 0; get_le32(&done->status) & QHCA_CMD_OWN; i++) {
		if (i == HOST_RUN_LIMIT)
			host_die("the device does not answer command %#x",
				 opcode);
		qhca_run(pf->hca, host_clock(pf), 4);
	}
	if (get_le32(&done->status))
		host_die("the device refuses command %#x for function %u",
			 opcode, gvmi);
	pf->next = mark;
}

static void set_row(struct host *pf, struct host *vf,
		    const struct qhca_gvm_entry *row)
{
	command(pf, QHCA_CMD_SET_GVM, vf->gvmi, row, sizeof(*row));
}

static void give_up(struct host *pf, uint64_t entry)
{
	if (entry & QHCA_ATE_PRESENT)
		pf->frames[((entry & QHCA_ATE_ADDR) - HOST_FRAMES) / HOST_PAGE]
			.gvmi = 0;
}

static void give_up_all(struct host *pf, const struct host *vf)
{
	for (uint32_t i = 0; i < pf->num_frames; i++)
		if (pf->frames[i].gvmi == vf->gvmi)
			pf->frames[i].gvmi = 0;
}

void host_s2_open(struct host *pf, struct host *vf, uint16_t uplink_attr)
{
	uint64_t nodes = num_nodes(vf);
	uint64_t root = host_alloc(pf, HOST_PAGE, HOST_PAGE);
	uint64_t node = host_alloc(pf, nodes * HOST_PAGE, HOST_PAGE);
	struct qhca_gvm_entry row = { .page_shift = 12, .levels = 2 };

	for (uint64_t i = 0; i < nodes; i++)
		put_le64(host_ptr(pf, root + 8 * i),
			 (node + i * HOST_PAGE) | QHCA_ATE_PRESENT);
	put_le64(&row.at_base, root);
	put_le16(&row.uplink_attr, uplink_attr);
	put_le32(&row.flags, QHCA_GVM_STAGE2);
	set_row(pf, vf, &row);
	/* Until now the old row was good. */
	give_up_all(pf, vf);
	vf->s2_root = root;
	vf->s2_node = node;
	vf->s2_attr = uplink_attr;
}

void host_s2_close(struct host *pf, struct host *vf)
{
	const struct qhca_gvm_entry row = { 0 };

	set_row(pf, vf, &row);
	give_up_all(pf, vf);
	vf->s2_root = 0;
	vf->s2_attr = 0;
}

static void *entry_of(struct host *pf, struct host *vf, uint64_t addr)
{
	if (addr >= vf->ram_len)
		host_die("function %u has no page at %#llx", vf->gvmi,
			 (unsigned long long)addr);
	return host_ptr(pf, vf->s2_node + addr / HOST_PAGE * 8);
}

uint64_t host_s2_entry(struct host *pf, struct host *vf, uint64_t addr)
{
	return get_le64(entry_of(pf, vf, addr));
}

bool host_s2_present(struct host *pf, struct host *vf, uint64_t addr)
{
	return host_s2_entry(pf, vf, addr) & QHCA_ATE_PRESENT;
}

void host_s2_map(struct host *pf, struct host *vf, uint64_t addr, uint64_t bits)
{
	uint32_t i = pf->num_frames++;

	if (i == pf->cap_frames) {
		pf->cap_frames = i ? 2 * i : 4096;
		pf->frames = realloc(pf->frames,
				     pf->cap_frames * sizeof(*pf->frames));
	}
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

void host_s2_invalidate(struct host *pf, struct host *vf, uint64_t addr,
			uint64_t len)
{
	struct qhca_range range = { 0 };

	put_le64(&range.start, addr);
	put_le64(&range.length, len);
	command(pf, QHCA_CMD_INVALIDATE_STAGE2, vf->gvmi, &range,
		sizeof(range));
}

void host_s2_unmap(struct host *pf, struct host *vf, uint64_t addr)
{
	uint64_t was = host_s2_entry(pf, vf, addr);

	put_le64(entry_of(pf, vf, addr), 0);
	host_s2_invalidate(pf, vf, addr & ~(HOST_PAGE - 1ull), HOST_PAGE);
	give_up(pf, was);
}

void host_s2_unmap_all(struct host *pf, struct host *vf)
{
	for (uint64_t addr = 0; addr < vf->ram_len; addr += HOST_PAGE)
		put_le64(entry_of(pf, vf, addr), 0);
	host_s2_invalidate(pf, vf, 0, vf->ram_len);
	give_up_all(pf, vf);
}
