// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Software of a function that breaks the rules. */
#include "vfio/cases.h"

#include <string.h>

#include "bytes.h"
#include "lib/tap.h"

const uint64_t outside[NUM_OUTSIDE] = {
	0, 64, GUEST_MEMORY, 1ull << 32, (1ull << 48) - PAGE, 1ull << 48, 1ull << 57,
	UINT64_MAX - PAGE + 1,
};

/* The commands of the host domain. */
void case_commands(const char *address)
{
	struct qhca_gvm_entry row = { 0 };
	struct qhca_range range = { 0 };
	struct guest g;
	uint32_t gvmi;

	guest_open(&g, address);
	guest_start(&g);
	gvmi = g.md->host.gvmi;
	CHECK(gvmi > 0);
	put_le64(&range.length, UINT64_MAX);
	CHECK(md_cmd(g.md, QHCA_CMD_SET_GVM, gvmi, 0, &row, sizeof(row), NULL, 0, NULL) ==
	      QHCA_CMD_NOT_PERMITTED);
	CHECK(md_cmd(g.md, QHCA_CMD_INVALIDATE_STAGE2, gvmi, 0, &range, sizeof(range), NULL, 0,
		     NULL) == QHCA_CMD_NOT_PERMITTED);
	CHECK(md_cmd(g.md, QHCA_CMD_STAGE2_RESUME, 0, gvmi << 16, NULL, 0, NULL, 0, NULL) ==
	      QHCA_CMD_NOT_PERMITTED);
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	tap_checked("the host domain's commands are refused");
}

uint32_t key_at(struct guest *g, uint64_t at, unsigned int levels, uint32_t gvmi)
{
	uint32_t index = g->md->next_key++;
	struct qhca_pte pte = { 0 };

	put_le32(&pte.ctrl, QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			    QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_MR) |
			    QHCA_PUT(QHCA_PTE_PAGE_SHIFT, 12u) |
			    QHCA_PUT(QHCA_PTE_LEVELS, levels));
	put_le32(&pte.access, GUEST_ALL);
	put_le32(&pte.pd, GUEST_PD);
	put_le32(&pte.at_key, index);
	put_le64(&pte.length, PAGE);
	put_le64(&pte.at_base, at);
	put_le32(&pte.gvmi, gvmi);
	guest_pte(g, index, &pte);
	return index << 8;
}

static enum qhca_wc_status write_to(struct guest *g, const struct md_mr *from, uint32_t key)
{
	return guest_rdma(g, QHCA_WQE_WRITE, from->iova, from->key, 0, key, 64);
}

/* Data and mailboxes outside the memory that is mapped; other functions' entries. */
void case_outside(const char *address)
{
	uint32_t gvmi, foreign[3];
	struct qhca_cmd_slot slot;
	struct md_mr from;
	struct guest g;

	guest_open(&g, address);
	guest_start(&g);
	gvmi = g.md->host.gvmi;
	guest_region(&g, &from, PAGE);
	for (size_t i = 0; i < NUM_OUTSIDE; i++) {
		CHECK(write_to(&g, &from, key_at(&g, outside[i], 0, gvmi)) ==
		      QHCA_WC_REM_ACCESS_ERR);
		guest_reconnect(&g);
		memset(&slot, 0, sizeof(slot));
		put_le16(&slot.opcode, QHCA_CMD_QUERY_PORT);
		put_le64(&slot.out_addr, outside[i]);
		put_le32(&slot.out_len, PAGE);
		slot = host_cmd_slot(&g.md->host, &slot, 0);
		CHECK((get_le32(&slot.status) & QHCA_CMD_STATUS) == QHCA_CMD_DMA_ERR);
	}
	/* The host domain's entries, the neighbour's, and those of nobody. */
	foreign[0] = 0;
	foreign[1] = gvmi + 1;
	foreign[2] = UINT32_MAX;
	for (int i = 0; i < 3; i++) {
		CHECK(write_to(&g, &from, key_at(&g, from.buf.root, 0, foreign[i])) ==
		      QHCA_WC_REM_ACCESS_ERR);
		guest_reconnect(&g);
	}
	CHECK(guest_fatal(&g, 0, NULL) == 0);
	guest_close(&g);
	tap_checked("no address leads outside the guest's memory");
}

/* Enables a command queue at @slots, and rings it. */
static void enable_at(struct guest *g, uint64_t slots)
{
	struct qhca_hca *hca = g->md->host.hca;
	uint16_t gvmi = g->md->host.gvmi;

	qhca_reg_write(hca, gvmi, QHCA_REG_CONTROL, QHCA_CONTROL_RESET, 0);
	qhca_reg_write(hca, gvmi, QHCA_REG_CMDQ_LOG_SLOTS, 0, 0);
	qhca_reg_write(hca, gvmi, QHCA_REG_CMDQ_BASE_LO, (uint32_t)slots, 0);
	qhca_reg_write(hca, gvmi, QHCA_REG_CMDQ_BASE_HI, (uint32_t)(slots >> 32), 0);
	qhca_reg_write(hca, gvmi, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE, 0);
	qhca_reg_write(hca, gvmi, QHCA_REG_CMDQ_DOORBELL, 1, 0);
}

/* Memory that the device itself needs is never there, or goes. */
void case_promises(const char *address)
{
	struct md_mr from, to;
	struct guest g;
	uint32_t info;

	guest_open(&g, address);
	for (size_t i = 0; i < NUM_OUTSIDE; i++) {
		enable_at(&g, outside[i] & ~(uint64_t)(PAGE - 1));
		CHECK(guest_fatal(&g, 10000, &info) == QHCA_FATAL_STAGE2);
		CHECK(info == QHCA_STAGE2_REFUSED);
	}
	guest_start(&g);
	CHECK(!guest_unmap(&g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE));
	CHECK(pinned(&g).device == 0 && pinned(&g).fault == 0);
	qhca_reg_write(g.md->host.hca, g.md->host.gvmi, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	CHECK(guest_fatal(&g, 10000, &info) == QHCA_FATAL_STAGE2);
	CHECK(info == QHCA_STAGE2_NOT_PINNED);

	/* It died alone, and its own reset brings it back. */
	CHECK(!guest_map(&g, HOST_PAGE, GUEST_MEMORY - HOST_PAGE, true));
	guest_start(&g);
	guest_region(&g, &from, PAGE);
	guest_region(&g, &to, PAGE);
	fill(&g, &from, 11);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(matches(&g, &to, 11));
	guest_close(&g);
	tap_checked("a function without its own memory dies, and comes back");
}

void check_alive(struct guest *g)
{
	struct md_mr from, to;

	CHECK(guest_fatal(g, 0, NULL) == 0);
	guest_region(g, &from, PAGE);
	guest_region(g, &to, PAGE);
	fill(g, &from, 21);
	CHECK(copy(g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(matches(g, &to, 21));
}

/*
 * An interrupt is a write to where the MSI-X table says, so the guest must not reach
 * that table.
 */
void case_vectors(const char *address)
{
	struct md_mr from, to;
	struct guest g;

	guest_open(&g, address);
	CHECK(!vfio_mappable(g.vfio, 0));
	guest_start(&g);
	for (unsigned int i = 0; i < 16 * VFIO_VECTORS; i += 4)
		vfio_reg_write(g.vfio, QHCA_MSIX_TABLE_OFFSET + i, 0x1000);
	guest_region(&g, &from, PAGE);
	guest_region(&g, &to, PAGE);
	vfio_interrupts(g.vfio, 0, 0);
	qhca_doorbell(g.md->host.hca, g.md->host.gvmi, 0, QHCA_DB_EQ_ARM,
		      QHCA_EQN_ASYNC | (uint64_t)g.md->eq_ci << 32, 0);
	md_arm(&g.cq, false);
	CHECK(copy(&g, &from, &to) == QHCA_WC_SUCCESS);
	CHECK(vfio_interrupts(g.vfio, 0, 5000) == 1);
	check_alive(&g);
	guest_close(&g);
	tap_checked("the MSI-X table is out of reach");
}
