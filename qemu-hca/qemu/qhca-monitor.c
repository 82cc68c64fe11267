/*
 * qhca adapter: QMP and HMP
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"
#include "qapi/util.h"
#include "qobject/qdict.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "qhca-dev.h"

/* Lines in an answer: at least a whole set, and no more than one can read. */
#define QHCA_LEAST_LINES    64u
#define QHCA_DEFAULT_LINES  256u
#define QHCA_MOST_LINES     4096u

/* BQL */
static QTAILQ_HEAD(, QhcaState) qhca_devices =
    QTAILQ_HEAD_INITIALIZER(qhca_devices);

void qhca_monitor_add(QhcaState *s)
{
    QTAILQ_INSERT_TAIL(&qhca_devices, s, next);
}

void qhca_monitor_remove(QhcaState *s)
{
    QTAILQ_REMOVE(&qhca_devices, s, next);
}

/*
 * ------------------------------------------------------------------------
 * QMP
 */
static QhcaPort *qhca_port(QhcaState *s, uint16_t gvmi)
{
    struct qhca_port_info info = { };
    QhcaPort *port = g_new0(QhcaPort, 1);

    qhca_query_port(s->hca, gvmi, &info);
    port->enabled = info.enabled;
    port->link_up = info.link_up;
    port->fatal = info.fatal;
    port->fatal_cause = info.fatal_cause;
    port->mac = g_strdup_printf("%02x:%02x:%02x:%02x:%02x:%02x",
                                MAC_ARG(info.mac));
    port->mtu = info.eth_mtu;
    port->gids = info.num_gids_valid;
    return port;
}

static QhcaQpType qhca_qp_type(uint8_t type)
{
    static const QhcaQpType types[] = {
        [QHCA_QPT_RC] = QHCA_QP_TYPE_RC,
        [QHCA_QPT_UC] = QHCA_QP_TYPE_UC,
        [QHCA_QPT_UD] = QHCA_QP_TYPE_UD,
        [QHCA_QPT_GSI] = QHCA_QP_TYPE_GSI,
        [QHCA_QPT_XRC_INI] = QHCA_QP_TYPE_XRC_INI,
        [QHCA_QPT_XRC_TGT] = QHCA_QP_TYPE_XRC_TGT,
        [QHCA_QPT_RAW] = QHCA_QP_TYPE_RAW,
    };

    return type < ARRAY_SIZE(types) ? types[type] : QHCA_QP_TYPE_UNKNOWN;
}

static QhcaQpState qhca_qp_state(uint8_t state)
{
    static const QhcaQpState states[] = {
        [QHCA_QPS_RESET] = QHCA_QP_STATE_RESET,
        [QHCA_QPS_INIT] = QHCA_QP_STATE_INIT,
        [QHCA_QPS_RTR] = QHCA_QP_STATE_RTR,
        [QHCA_QPS_RTS] = QHCA_QP_STATE_RTS,
        [QHCA_QPS_SQD] = QHCA_QP_STATE_SQD,
        [QHCA_QPS_SQE] = QHCA_QP_STATE_SQE,
        [QHCA_QPS_ERR] = QHCA_QP_STATE_ERR,
    };

    return state < ARRAY_SIZE(states) ? states[state] : QHCA_QP_STATE_UNKNOWN;
}

static char *qhca_part_state(const struct qhca_qp_info *info,
                             enum qhca_qp_part part)
{
    const char *name = qhca_qp_part_state(part, info->part[part]);

    return g_strdup(name ? name : "unknown");
}

static void qhca_add_qp(void *arg, const struct qhca_qp_info *info)
{
    QhcaQpList ***tail = arg;
    QhcaQp *qp = g_new0(QhcaQp, 1);

    qp->qpn = info->qpn;
    qp->type = qhca_qp_type(info->type);
    qp->state = qhca_qp_state(info->state);
    qp->dest_qpn = info->dest_qpn;
    qp->sq_pi = info->sq_pi;
    qp->sq_ci = info->sq_ci;
    qp->rq_pi = info->rq_pi;
    qp->rq_ci = info->rq_ci;
    qp->sq_psn = info->sq_psn;
    qp->una_psn = info->una_psn;
    qp->rq_psn = info->rq_psn;
    qp->requester = qhca_part_state(info, QHCA_PART_REQUESTER);
    qp->responder = qhca_part_state(info, QHCA_PART_RESPONDER);
    qp->requester_fault = qhca_part_state(info, QHCA_PART_REQUESTER_FAULT);
    qp->responder_fault = qhca_part_state(info, QHCA_PART_RESPONDER_FAULT);
    qp->cached = info->cached;
    QAPI_LIST_APPEND(*tail, qp);
}

static QhcaRegionType qhca_region_type(uint8_t type)
{
    static const QhcaRegionType types[] = {
        [QHCA_PTE_MR] = QHCA_REGION_TYPE_MR,
        [QHCA_PTE_FAST_REG] = QHCA_REGION_TYPE_FAST_REG,
        [QHCA_PTE_MW1] = QHCA_REGION_TYPE_MW1,
        [QHCA_PTE_MW2B] = QHCA_REGION_TYPE_MW2B,
        [QHCA_PTE_POOL] = QHCA_REGION_TYPE_POOL,
        [QHCA_PTE_DEVMEM] = QHCA_REGION_TYPE_DEVMEM,
        [QHCA_PTE_DMA] = QHCA_REGION_TYPE_DMA,
    };

    return type && type < ARRAY_SIZE(types) ? types[type] :
                                              QHCA_REGION_TYPE_UNKNOWN;
}

static QhcaRegion *qhca_region(const struct qhca_cache_line *info)
{
    QhcaRegion *region = g_new0(QhcaRegion, 1);

    region->key = info->key;
    region->type = qhca_region_type(info->type);
    region->pd = info->pd;
    region->access = info->access;
    region->start = info->start;
    region->length = info->length;
    return region;
}

/* A listing ends at the end of a set, where the next one begins. */
typedef struct QhcaLineWalk {
    QhcaCache *cache;
    QhcaCacheLineList **tail;
    enum qhca_cache_id id;
    uint32_t room;
    uint32_t last_set;
} QhcaLineWalk;

static bool qhca_add_line(void *arg, const struct qhca_cache_line *info)
{
    QhcaLineWalk *walk = arg;
    QhcaCacheLine *line;

    if (info->set != walk->last_set && walk->room < walk->cache->blocks) {
        walk->cache->has_next_set = true;
        walk->cache->next_set = info->set;
        return false;
    }
    walk->last_set = info->set;
    walk->room--;
    line = g_new0(QhcaCacheLine, 1);
    line->set = info->set;
    line->block = info->block;
    line->dirty = info->dirty;
    line->gvmi = info->gvmi;
    line->index = info->index;
    line->page = info->page;
    line->addr = info->addr;
    line->writable = info->writable;
    if (walk->id == QHCA_CACHE_PT) {
        line->region = qhca_region(info);
    }
    QAPI_LIST_APPEND(walk->tail, line);
    return true;
}

static void qhca_add_lines(QhcaState *s, QhcaCache *cache,
                           enum qhca_cache_id id, uint32_t from_set,
                           uint32_t max)
{
    QhcaLineWalk walk = {
        .cache = cache, .tail = &cache->lines, .id = id, .room = max,
        .last_set = UINT32_MAX,
    };

    cache->has_lines = true;
    qhca_for_each_cache_line(s->hca, id, from_set, qhca_add_line, &walk);
}

/* In the order of the engine's enum. */
static const QhcaCacheId qhca_cache_ids[QHCA_NUM_CACHE_IDS] = {
    [QHCA_CACHE_PT] = QHCA_CACHE_ID_PT, [QHCA_CACHE_AT] = QHCA_CACHE_ID_AT,
    [QHCA_CACHE_QD] = QHCA_CACHE_ID_QP, [QHCA_CACHE_CQ] = QHCA_CACHE_ID_CQ,
    [QHCA_CACHE_SRQ] = QHCA_CACHE_ID_SRQ, [QHCA_CACHE_S2] = QHCA_CACHE_ID_S2,
};

static QhcaCache *qhca_cache(QhcaState *s, enum qhca_cache_id id)
{
    struct qhca_cache_info info = { };
    QhcaCache *cache = g_new0(QhcaCache, 1);

    qhca_query_cache(s->hca, id, &info);
    cache->name = g_strdup(QhcaCacheId_str(qhca_cache_ids[id]));
    cache->sets = info.geometry.sets;
    cache->blocks = info.geometry.blocks;
    cache->valid = info.valid;
    return cache;
}

static void qhca_add_counter(QhcaCounterList ***tail, const char *name,
                             uint64_t value)
{
    QhcaCounter *counter = g_new0(QhcaCounter, 1);

    counter->name = g_strdup(name);
    counter->value = value;
    QAPI_LIST_APPEND(*tail, counter);
}

static QhcaCounterList *qhca_counters(QhcaState *s, uint16_t gvmi)
{
    QhcaCounterList *list = NULL, **tail = &list;

    for (int i = 0; i < QHCA_NUM_COUNTERS; i++) {
        qhca_add_counter(&tail, qhca_counter_name(i),
                         qhca_counter(s->hca, gvmi, i));
    }
    return list;
}

static QhcaCounterList *qhca_adapter_counters(QhcaState *s)
{
    struct qhca_bundles bundles = qhca_query_bundles(s->hca);
    const struct {
        const char *name;
        uint64_t value;
    } counter[] = {
#define STAT(field) { #field, s->stats.field }
        STAT(slices), STAT(thread_slices), STAT(doorbells_deferred),
        STAT(frames_deferred), STAT(frames_sent), STAT(send_stalls),
        STAT(frames_received), STAT(receive_stalls), STAT(interrupts),
        STAT(dma_windows_filled), STAT(dma_refused), STAT(thread_sleeps),
        STAT(thread_polls), STAT(thread_poll_hits), STAT(awaits), STAT(await_hits), STAT(yields),
        STAT(long_yields), STAT(mmio_refused), STAT(link_connects),
        STAT(link_losses), STAT(link_bad_slots), STAT(link_wakes_sent),
        STAT(link_wakes_received), STAT(polls), STAT(poll_frames),
        STAT(poll_yields), STAT(thread_naps), STAT(copies_streamed),
#undef STAT
        { "bundles_sent", bundles.sent },
        { "bundles_received", bundles.received },
        { "bundle_messages_sent", bundles.messages },
        { "large_segments_sent", bundles.large_sent },
        { "large_segments_received", bundles.large_received },
    };
    QhcaCounterList *list = NULL, **tail = &list;

    for (size_t i = 0; i < ARRAY_SIZE(counter); i++) {
        qhca_add_counter(&tail, counter[i].name, counter[i].value);
    }
    return list;
}

static QhcaVf *qhca_vf(QhcaFunction *f)
{
    QhcaState *s = f->s;
    QhcaVf *vf = g_new0(QhcaVf, 1);
    QhcaQpList **qp_tail = &vf->qps;

    vf->gvmi = f->gvmi;
    vf->qom_path = object_get_canonical_path(OBJECT(f->dev));
    qhca_enter(s);          /* what is on the list has an engine */
    vf->port = qhca_port(s, f->gvmi);
    qhca_for_each_qp(s->hca, f->gvmi, qhca_add_qp, &qp_tail);
    vf->counters = qhca_counters(s, f->gvmi);
    qhca_leave(s);
    return vf;
}

static QhcaVfList *qhca_vfs(QhcaState *s)
{
    QhcaVfList *list = NULL, **tail = &list;

    for (int i = 1; i <= s->sriov_vfs; i++) {
        if (s->fn[i] && s->fn[i]->dev->enabled) {
            QAPI_LIST_APPEND(tail, qhca_vf(s->fn[i]));
        }
    }
    return list;
}

static QhcaInfo *qhca_info(QhcaState *s, bool lines)
{
    QhcaInfo *info = g_new0(QhcaInfo, 1);
    QhcaQpList **qp_tail = &info->qps;
    QhcaCacheList **cache_tail = &info->caches;

    info->id = g_strdup(DEVICE(s)->id);
    info->qom_path = object_get_canonical_path(OBJECT(s));
    qhca_enter(s);          /* what is on the list has an engine */
    info->port = qhca_port(s, 0);
    qhca_for_each_qp(s->hca, 0, qhca_add_qp, &qp_tail);
    for (int i = 0; i < QHCA_NUM_CACHE_IDS; i++) {
        QhcaCache *cache;

        if (i == QHCA_CACHE_S2 && !s->sriov_vfs) {
            continue;
        }
        cache = qhca_cache(s, i);
        if (lines) {
            qhca_add_lines(s, cache, i, 0, QHCA_DEFAULT_LINES);
        }
        QAPI_LIST_APPEND(cache_tail, cache);
    }
    info->counters = qhca_counters(s, 0);
    info->adapter = qhca_adapter_counters(s);
    qhca_leave(s);
    info->vfs = qhca_vfs(s);
    return info;
}

QhcaInfoList *qmp_query_qhca(const char *id, bool has_cache_lines,
                             bool cache_lines, Error **errp)
{
    QhcaInfoList *list = NULL, **tail = &list;
    QhcaState *s;

    QTAILQ_FOREACH(s, &qhca_devices, next) {
        g_autofree char *path = object_get_canonical_path(OBJECT(s));

        if (!id || !g_strcmp0(id, DEVICE(s)->id) || !strcmp(id, path)) {
            QAPI_LIST_APPEND(tail, qhca_info(s, has_cache_lines &&
                                                cache_lines));
        }
    }
    if (id && !list) {
        error_setg(errp, "there is no qhca device '%s'", id);
    }
    return list;
}

static QhcaState *qhca_find(const char *id, Error **errp)
{
    QhcaState *s;

    QTAILQ_FOREACH(s, &qhca_devices, next) {
        g_autofree char *path = object_get_canonical_path(OBJECT(s));

        if (!g_strcmp0(id, DEVICE(s)->id) || !strcmp(id, path)) {
            return s;
        }
    }
    error_setg(errp, "there is no qhca device '%s'", id);
    return NULL;
}

QhcaCache *qmp_x_query_qhca_cache(const char *id, QhcaCacheId which,
                                  bool has_from_set, uint32_t from_set,
                                  bool has_max_lines, uint32_t max_lines,
                                  Error **errp)
{
    QhcaState *s = qhca_find(id, errp);
    enum qhca_cache_id engine_id = 0;
    QhcaCache *cache;

    if (!s) {
        return NULL;
    }
    if (!has_max_lines) {
        max_lines = QHCA_DEFAULT_LINES;
    }
    if (max_lines < QHCA_LEAST_LINES || max_lines > QHCA_MOST_LINES) {
        error_setg(errp, "max-lines=%" PRIu32 " is not in the range %u to %u",
                   max_lines, QHCA_LEAST_LINES, QHCA_MOST_LINES);
        return NULL;
    }
    while (qhca_cache_ids[engine_id] != which) {
        engine_id++;
    }
    qhca_enter(s);          /* what is on the list has an engine */
    cache = qhca_cache(s, engine_id);
    qhca_add_lines(s, cache, engine_id, has_from_set ? from_set : 0,
                   max_lines);
    qhca_leave(s);
    return cache;
}

/*
 * ------------------------------------------------------------------------
 * HMP: counters that are zero are left out
 */
static void hmp_qhca_counters(Monitor *mon, const char *title,
                              const QhcaCounterList *list)
{
    monitor_printf(mon, "  %s:\n", title);
    for (; list; list = list->next) {
        if (list->value->value) {
            monitor_printf(mon, "    %-24s %" PRIu64 "\n", list->value->name,
                           list->value->value);
        }
    }
}

/* A part that is idle is not worth the room. */
static void hmp_qhca_part(Monitor *mon, const char *part, const char *state,
                          const char *idle)
{
    if (strcmp(state, idle)) {
        monitor_printf(mon, " %s %s", part, state);
    }
}

static void hmp_qhca_qps(Monitor *mon, const QhcaQpList *list)
{
    for (; list; list = list->next) {
        const QhcaQp *qp = list->value;

        monitor_printf(mon, "  qp %" PRIu32 ": %s %s dest %" PRIu32
                       " sq %" PRIu32 "/%" PRIu32 " rq %" PRIu32 "/%" PRIu32
                       " psn %" PRIu32 " unacked %" PRIu32
                       " expected %" PRIu32,
                       qp->qpn, QhcaQpType_str(qp->type),
                       QhcaQpState_str(qp->state), qp->dest_qpn, qp->sq_ci,
                       qp->sq_pi, qp->rq_ci, qp->rq_pi, qp->sq_psn,
                       qp->una_psn, qp->rq_psn);
        hmp_qhca_part(mon, "requester", qp->requester, "ready");
        hmp_qhca_part(mon, "responder", qp->responder, "ready");
        hmp_qhca_part(mon, "requester-fault", qp->requester_fault, "none");
        hmp_qhca_part(mon, "responder-fault", qp->responder_fault, "none");
        monitor_printf(mon, "%s\n", qp->cached ? " cached" : "");
    }
}

static void hmp_qhca_port(Monitor *mon, const QhcaPort *port)
{
    monitor_printf(mon, "  port: %s, link %s, mac %s, mtu %" PRIu32
                   ", %" PRIu32 " gids\n",
                   port->fatal ? "dead" :
                   port->enabled ? "enabled" : "disabled",
                   port->link_up ? "up" : "down", port->mac, port->mtu,
                   port->gids);
    if (port->fatal) {
        monitor_printf(mon, "  cause: %" PRIu32 "\n", port->fatal_cause);
    }
}

static void hmp_qhca_vf(Monitor *mon, const char *name, const QhcaVf *vf)
{
    monitor_printf(mon, "%s, gvmi %u:\n", name, vf->gvmi);
    hmp_qhca_port(mon, vf->port);
    hmp_qhca_qps(mon, vf->qps);
    hmp_qhca_counters(mon, "device", vf->counters);
}

static void hmp_qhca_device(Monitor *mon, const QhcaInfo *info)
{
    const char *name = info->id ? info->id : info->qom_path;

    monitor_printf(mon, "%s:\n", name);
    hmp_qhca_port(mon, info->port);
    for (const QhcaCacheList *c = info->caches; c; c = c->next) {
        monitor_printf(mon, "  cache %-3s: %u sets x %u blocks, %" PRIu32
                       " lines in use\n", c->value->name, c->value->sets,
                       c->value->blocks, c->value->valid);
    }
    hmp_qhca_qps(mon, info->qps);
    hmp_qhca_counters(mon, "device", info->counters);
    hmp_qhca_counters(mon, "adapter", info->adapter);
    for (const QhcaVfList *v = info->vfs; v; v = v->next) {
        hmp_qhca_vf(mon, name, v->value);
    }
}

static void hmp_info_qhca(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;
    g_autoptr(QhcaInfoList) list =
        qmp_query_qhca(qdict_get_try_str(qdict, "id"), false, false, &err);

    if (hmp_handle_error(mon, err)) {
        return;
    }
    for (const QhcaInfoList *i = list; i; i = i->next) {
        hmp_qhca_device(mon, i->value);
    }
}

static void hmp_qhca_line(Monitor *mon, const QhcaCacheLine *line)
{
    monitor_printf(mon, "  set %5" PRIu32 " block %2" PRIu32 "%s: %" PRIu32,
                   line->set, line->block, line->dirty ? " dirty" : "",
                   line->index);
    if (line->addr) {
        monitor_printf(mon, " page %#" PRIx64 " at %#" PRIx64 "%s",
                       line->page, line->addr, line->writable ? " w" : "");
    }
    if (line->region) {
        const QhcaRegion *r = line->region;

        monitor_printf(mon, " key %#" PRIx32 " %s pd %" PRIu32 " access %#"
                       PRIx32 " start %#" PRIx64 " length %#" PRIx64, r->key,
                       QhcaRegionType_str(r->type), r->pd, r->access, r->start,
                       r->length);
    }
    monitor_printf(mon, "\n");
}

static void hmp_info_qhca_cache(Monitor *mon, const QDict *qdict)
{
    const char *name = qdict_get_str(qdict, "cache");
    Error *err = NULL;
    int which = qapi_enum_parse(&QhcaCacheId_lookup, name, -1, &err);
    g_autoptr(QhcaCache) cache = NULL;

    if (which >= 0) {
        cache = qmp_x_query_qhca_cache(qdict_get_str(qdict, "id"), which, true,
                                       qdict_get_try_int(qdict, "from", 0),
                                       false, 0, &err);
    }
    if (hmp_handle_error(mon, err)) {
        return;
    }
    monitor_printf(mon, "%s: %u sets x %u blocks, %" PRIu32
                   " lines in use\n", cache->name, cache->sets,
                   cache->blocks, cache->valid);
    for (const QhcaCacheLineList *l = cache->lines; l; l = l->next) {
        hmp_qhca_line(mon, l->value);
    }
    if (cache->has_next_set) {
        monitor_printf(mon, "  more from set %" PRIu32 " on\n",
                       cache->next_set);
    }
}

void qhca_monitor_register(void)
{
    monitor_register_hmp("qhca", true, hmp_info_qhca);
    monitor_register_hmp("qhca-cache", true, hmp_info_qhca_cache);
}
