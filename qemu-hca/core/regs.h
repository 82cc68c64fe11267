/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registers (BAR 0) and the dispatch of doorbells (BAR 2): qhca_reg_read(),
 * qhca_reg_write() and qhca_doorbell() of qhca.h.
 */
#ifndef HCA_CORE_REGS_H
#define HCA_CORE_REGS_H

#include "qhca.h"

struct hca_regs {
	uint32_t clock_hi;		/* latched by reading CLOCK_LO */
};

#endif /* HCA_CORE_REGS_H */
