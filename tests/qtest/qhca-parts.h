/*
 * What the tests share that link files of the qhca RDMA adapter.  A test defines
 * bql_locked() and what else it looks at.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_QHCA_PARTS_H
#define TESTS_QTEST_QHCA_PARTS_H

#include "hw/rdma/qhca/qemu/qhca-dev.h"

extern MemoryListener *memory_listener;     /* NULL: there is none */

extern uint64_t parts_messages;             /* that the physical function has answered */
extern uint64_t parts_acks;                 /* that it has sent */

/* QEMU's types and its main loop, and the program's arguments. */
void parts_init(int *argc, char ***argv);

/*
 * A device with a physical function and without its thread.  It has an engine, which is
 * only there, and a link in place of a netdev.
 */
QhcaState *parts_new_device(void);
void parts_free_device(QhcaState *s);

/* Has who holds the BQL dropped it for a while? */
bool parts_bql_dropped(void);
/* How long has he to wait for it then? */
extern unsigned int parts_bql_wait_us;

#endif /* TESTS_QTEST_QHCA_PARTS_H */
