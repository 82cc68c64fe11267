/*
 * What the qtests of the qhca RDMA adapter that migrate share: a guest moves to
 * another QEMU by way of a file
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_QHCA_MOVE_H
#define TESTS_QTEST_QHCA_MOVE_H

#include "qhca-qtest.h"

/* Files of one move. */
typedef struct Move {
    char *dir, *state, *errors;
} Move;

void move_begin(Move *m);
void move_end(Move *m);

/* Wait until the migration is in this state; false: it has failed before. */
bool wait_status(QTestState *qts, const char *status);
/* Wait until the VM runs. */
void wait_running(QTestState *qts);
/* Save the guest into a file, whose migration then has this state ("completed"). */
void save_until(QTestState *qts, const Move *m, const char *status);
void save(QTestState *qts, const Move *m);
/*
 * Another QEMU, whose messages go to the file of @m.  @options are those of the machine and
 * the device.
 */
QTestState *destination(const Move *m, const char *options);
void load_begin(QTestState *qts, const char *uri);
bool load_end(QTestState *qts);
QTestState *load(const Move *m, const char *options, bool *ok);
/* Move the guest of @h, with what has been found in it. */
void move(Hca *h, const char *options);

#endif /* TESTS_QTEST_QHCA_MOVE_H */
