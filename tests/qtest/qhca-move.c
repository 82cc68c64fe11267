/*
 * What the qtests of the qhca RDMA adapter that migrate share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qobject/qstring.h"
#include "qhca-move.h"

void move_begin(Move *m)
{
    m->dir = g_dir_make_tmp("qhca-migrate-XXXXXX", NULL);
    g_assert_nonnull(m->dir);
    m->state = g_build_filename(m->dir, "state", NULL);
    m->errors = g_build_filename(m->dir, "errors", NULL);
}

void move_end(Move *m)
{
    g_unlink(m->state);
    g_unlink(m->errors);
    g_rmdir(m->dir);
    g_free(m->state);
    g_free(m->errors);
    g_free(m->dir);
}

/* @pauses: the source waits when its VM has stopped */
static void set_capabilities(QTestState *qts, bool pauses)
{
    qtest_qmp_assert_success(qts,
        "{ 'execute': 'migrate-set-capabilities', 'arguments': {"
        "  'capabilities': ["
        "    { 'capability': 'events', 'state': true },"
        "    { 'capability': 'pause-before-switchover', 'state': %i } ] } }",
        pauses);
}

bool wait_status(QTestState *qts, const char *status)
{
    for (;;) {
        QDict *event = qtest_qmp_eventwait_ref(qts, "MIGRATION");
        g_autofree char *is =
            g_strdup(qdict_get_str(qdict_get_qdict(event, "data"), "status"));

        qobject_unref(event);
        if (g_str_equal(is, status)) {
            return true;
        }
        if (g_str_equal(is, "failed")) {
            return false;
        }
    }
}

void wait_running(QTestState *qts)
{
    gint64 end = g_get_monotonic_time() + ANSWER_S * G_USEC_PER_SEC;
    bool running;

    do {
        QDict *answer = qtest_qmp(qts, "{ 'execute': 'query-status' }");

        running = qdict_get_bool(qdict_get_qdict(answer, "return"), "running");
        qobject_unref(answer);
    } while (!running && g_get_monotonic_time() < end);
    g_assert_true(running);
}

void save_until(QTestState *qts, const Move *m, const char *status)
{
    set_capabilities(qts, g_str_equal(status, "pre-switchover"));
    qtest_qmp_assert_success(qts, "{ 'execute': 'migrate', 'arguments': {"
                             "  'uri': %p } }",
                             qstring_from_str(g_strdup_printf("file:%s",
                                                              m->state)));
    g_assert_true(wait_status(qts, status));
}

void save(QTestState *qts, const Move *m)
{
    save_until(qts, m, "completed");
}

QTestState *destination(const Move *m, const char *options)
{
    QTestState *qts = qtest_initf("-nodefaults %s -incoming defer 2>%s",
                                  options, m->errors);

    set_capabilities(qts, false);
    return qts;
}

void load_begin(QTestState *qts, const char *uri)
{
    qtest_qmp_assert_success(qts, "{ 'execute': 'migrate-incoming',"
                             "  'arguments': { 'exit-on-error': false,"
                             "  'uri': %s } }", uri);
}

bool load_end(QTestState *qts)
{
    bool ok = wait_status(qts, "completed");

    if (ok) {
        /* A guest that was stopped there is stopped here. */
        qtest_qmp_assert_success(qts, "{ 'execute': 'cont' }");
    }
    return ok;
}

QTestState *load(const Move *m, const char *options, bool *ok)
{
    QTestState *qts = destination(m, options);
    g_autofree char *uri = g_strdup_printf("file:%s", m->state);

    load_begin(qts, uri);
    *ok = load_end(qts);
    return qts;
}

void move(Hca *h, const char *options)
{
    QTestState *from = h->qts;
    Move m;
    bool ok;

    move_begin(&m);
    save(from, &m);
    h->qts = load(&m, options, &ok);
    h->bus->qts = h->qts;
    if (!ok) {
        g_autofree char *errors = NULL;

        g_file_get_contents(m.errors, &errors, NULL, NULL);
        g_test_message("%s", errors);
    }
    g_assert_true(ok);
    qtest_quit(from);
    move_end(&m);
}
