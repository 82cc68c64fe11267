/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Going on with what qhca_load() has loaded.
 */
#ifndef HCA_CORE_MIGRATE_H
#define HCA_CORE_MIGRATE_H

struct hca;

/*
 * If the engine has been loaded since it last ran: read from the guest's memory what the
 * image does not have.  A function that finds something else there dies.
 */
void hca_restore(struct hca *hca);

#endif /* HCA_CORE_MIGRATE_H */
