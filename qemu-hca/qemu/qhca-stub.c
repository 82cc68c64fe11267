/*
 * qhca adapter: the QMP command in a QEMU built without the device
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"

QhcaInfoList *qmp_query_qhca(const char *id, bool has_cache_lines,
                             bool cache_lines, Error **errp)
{
    if (id) {
        error_setg(errp, "there is no qhca device '%s'", id);
    }
    return NULL;
}
