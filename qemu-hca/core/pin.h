/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that a command gives the device for itself, in a function with stage 2
 * (Documentation/hardware.rst, Memory that the device needs itself).
 *
 * Before a command executes, all such memory must be present and pinned.  What is not
 * is asked for, one range at a time, and the command waits for the answer of the host
 * domain; then the device looks again.  Without stage 2 nothing is looked at.
 */
#ifndef HCA_CORE_PIN_H
#define HCA_CORE_PIN_H

#include "hca.h"

enum hca_pin {
	HCA_PIN_OK,
	HCA_PIN_WAIT,			/* for STAGE2_RESUME */
	HCA_PIN_AGAIN,			/* more of it in the next slice */
	HCA_PIN_REFUSED,		/* by the host domain, or the function died */
};

/* May command slots be read?  They are pinned before the first one after ENABLE. */
bool hca_pin_slots(struct hca_fn *fn);
/* The mailboxes of the current command, of @in and @out bytes. */
enum hca_pin hca_pin_mailboxes(struct hca_fn *fn, uint32_t in, uint32_t out);
/* What its input mailbox, which has been read, and its slot name. */
enum hca_pin hca_pin_named(struct hca_fn *fn, const struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_PIN_H */
