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

QhcaCache *qmp_x_query_qhca_cache(const char *id, QhcaCacheId which,
                                  bool has_from_set, uint32_t from_set,
                                  bool has_max_lines, uint32_t max_lines,
                                  Error **errp)
{
    error_setg(errp, "there is no qhca device '%s'", id);
    return NULL;
}
