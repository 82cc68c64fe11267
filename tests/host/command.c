// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The command queue */
#include "host.h"

#include <string.h>

#include "bytes.h"

void host_enable_slots(struct host *h, unsigned int log_slots)
{
	h->slots = host_alloc(h, 64ull << log_slots, HOST_PAGE);
	qhca_reg_write(h->hca, h->gvmi, QHCA_REG_CMDQ_LOG_SLOTS, log_slots,
		       host_clock(h));
	qhca_reg_write(h->hca, h->gvmi, QHCA_REG_CMDQ_BASE_LO,
		       (uint32_t)h->slots, host_clock(h));
	qhca_reg_write(h->hca, h->gvmi, QHCA_REG_CMDQ_BASE_HI,
		       (uint32_t)(h->slots >> 32), host_clock(h));
	qhca_reg_write(h->hca, h->gvmi, QHCA_REG_CONTROL,
		       QHCA_CONTROL_ENABLE, host_clock(h));
	if (!(qhca_reg_read(h->hca, h->gvmi, QHCA_REG_STATUS, host_clock(h)) &
	      QHCA_STATUS_ENABLED))
		host_die("the device does not enable its command queue");
}

void host_enable(struct host *h)
{
	host_enable_slots(h, QHCA_MAX_LOG_CMD_SLOTS);
}

struct qhca_cmd_slot *host_cmd_begin(struct host *h,
				     const struct qhca_cmd_slot *slot,
				     unsigned int number)
{
	struct qhca_cmd_slot *to = host_ptr(h, h->slots + number * sizeof(*to));

	*to = *slot;
	put_le32(&to->status, QHCA_CMD_OWN);
	qhca_reg_write(h->hca, h->gvmi, QHCA_REG_CMDQ_DOORBELL, 1u << number,
		       host_clock(h));
	return to;
}

struct qhca_cmd_slot host_cmd_slot(struct host *h,
				   const struct qhca_cmd_slot *slot,
				   unsigned int number)
{
	const struct qhca_cmd_slot *done = host_cmd_begin(h, slot, number);

	host_run(h);
	return *done;
}

enum qhca_cmd_status host_cmd(struct host *h, enum qhca_opcode opcode,
			      uint32_t index, uint32_t param, const void *in,
			      uint32_t in_len, void *out, uint32_t out_len)
{
	struct qhca_cmd_slot slot = { 0 };
	uint64_t mark = h->next, in_addr, out_addr;

	in_addr = host_alloc(h, QHCA_MAILBOX_SIZE, 64);
	out_addr = host_alloc(h, QHCA_MAILBOX_SIZE, 64);
	if (in_len)
		memcpy(host_ptr(h, in_addr), in, in_len);
	put_le16(&slot.opcode, (uint16_t)opcode);
	put_le32(&slot.index, index);
	put_le32(&slot.param, param);
	put_le64(&slot.in_addr, in_addr);
	put_le64(&slot.out_addr, out_addr);
	put_le32(&slot.in_len, in_len);
	put_le32(&slot.out_len, out_len);
	slot = host_cmd_slot(h, &slot, 0);
	if (get_le32(&slot.status) & QHCA_CMD_OWN)
		host_die("the device does not answer command %#x", opcode);
	if (out_len)
		memcpy(out, host_ptr(h, out_addr), out_len);
	h->next = mark;
	return (enum qhca_cmd_status)(get_le32(&slot.status) &
				      QHCA_CMD_STATUS);
}
