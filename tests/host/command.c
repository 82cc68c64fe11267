// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Commands */
#include "internal.h"

#include <string.h>

#include "bytes.h"

int md_cmd(struct md *md, uint16_t opcode, uint32_t index, uint32_t param,
	   const void *in, uint32_t in_len, void *out, uint32_t out_len,
	   uint64_t *out_param)
{
	struct qhca_cmd_slot *slot = md_ptr(md, md->cmdq);

	memset(slot, 0, sizeof(*slot));
	put_le16(&slot->opcode, opcode);
	put_le32(&slot->index, index);
	put_le32(&slot->param, param);
	if (in) {
		memcpy(md_ptr(md, md->in_mbox), in, in_len);
		put_le64(&slot->in_addr, md->in_mbox);
		put_le32(&slot->in_len, in_len);
	}
	if (out) {
		put_le64(&slot->out_addr, md->out_mbox);
		put_le32(&slot->out_len, out_len);
	}
	put_le32(&slot->status, QHCA_CMD_OWN);
	qhca_reg_write(md->hca, QHCA_REG_CMDQ_DOORBELL, 1, md->now);
	for (int i = 0; get_le32(&slot->status) & QHCA_CMD_OWN; i++) {
		if (i == RUN_LIMIT)
			md_die("command %#x is not answered", opcode);
		qhca_run(md->hca, md->now, 4);
	}
	if (out)
		memcpy(out, md_ptr(md, md->out_mbox), out_len);
	if (out_param)
		*out_param = get_le64(&slot->out_param);
	return get_le32(&slot->status) & QHCA_CMD_STATUS;
}

void md_must(int status, const char *what)
{
	if (status)
		md_die("%s: command status %d", what, status);
}
