/*
 * qhca adapter: no link over shared memory, where there are no memfds and epoll
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qhca-dev.h"

void qhca_link_class_init(ObjectClass *klass)
{
}

bool qhca_link_init(QhcaState *s, Error **errp)
{
    if (s->link.path) {
        error_setg(errp, "shm=%s: this host has no memory to share",
                   s->link.path);
        return false;
    }
    return true;
}

void qhca_link_exit(QhcaState *s)
{
}

void qhca_link_free(QhcaState *s)
{
}

void qhca_link_finalize(QhcaState *s)
{
}

void qhca_link_vm_change(QhcaState *s, bool running, RunState state)
{
}

void qhca_link_check(QhcaState *s)
{
}

void *qhca_link_reserve(QhcaState *s)
{
    g_assert_not_reached();
}

void qhca_link_commit(QhcaState *s, size_t len)
{
    g_assert_not_reached();
}

bool qhca_link_has_room(QhcaState *s)
{
    g_assert_not_reached();
}

bool qhca_link_pending(QhcaState *s)
{
    return false;
}

void qhca_link_receive(QhcaState *s, unsigned int frames)
{
}

void qhca_link_attend(QhcaState *s)
{
}

void qhca_link_attended(QhcaState *s)
{
}

bool qhca_link_wakes_peer(QhcaState *s)
{
    return false;
}

void qhca_link_wake_peer(QhcaState *s)
{
}

void qhca_link_events(QhcaState *s)
{
}

int64_t qhca_link_frames_awake(QhcaState *s)
{
    return 0;
}

bool qhca_link_hinted(QhcaState *s)
{
    return false;
}

bool qhca_link_is_due(QhcaState *s)
{
    return false;
}

void qhca_link_polled(QhcaState *s, bool polls_on)
{
}

bool qhca_link_called(QhcaState *s)
{
    return false;
}

bool qhca_link_sleep(QhcaState *s)
{
    g_assert_not_reached();
}

void qhca_link_call(QhcaState *s)
{
}

void qhca_link_call_before(QhcaState *s, uint64_t deadline)
{
}
