/*
 * qhca adapter: properties
 *
 * Limits and geometry are fixed when the device is realized.  The fault
 * injector's settings and the cost of misses may be changed at any time, on the
 * command line or with qom-set; they take effect at once.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/host-utils.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "qhca-dev.h"

/*
 * ------------------------------------------------------------------------
 * Limits.  The engine has their defaults; see qhca_props_instance_init().
 */
#define CFG_PROP(name, field, prop, type)                                   \
    DEFINE_PROP_UNSIGNED_NODEFAULT(name, QhcaState, cfg.field, prop, type)
#define CFG_PROP_U8(name, field)                                            \
    CFG_PROP(name, field, qdev_prop_uint8, uint8_t)
#define CFG_PROP_U16(name, field)                                           \
    CFG_PROP(name, field, qdev_prop_uint16, uint16_t)
#define CFG_PROP_CACHE(name, id)                                            \
    CFG_PROP_U16(name "-cache-sets", cache_default[id].sets),               \
    CFG_PROP_U16(name "-cache-blocks", cache_default[id].blocks),           \
    CFG_PROP_U16(name "-cache-max-sets", cache_max[id].sets),               \
    CFG_PROP_U16(name "-cache-max-blocks", cache_max[id].blocks)

#define VF_PROP(name, field, prop, type)                                    \
    DEFINE_PROP_UNSIGNED_NODEFAULT(name, QhcaState, vf_cfg.field, prop, type)
#define VF_PROP_U8(name, field)                                             \
    VF_PROP(name, field, qdev_prop_uint8, uint8_t)
#define VF_PROP_U16(name, field)                                            \
    VF_PROP(name, field, qdev_prop_uint16, uint16_t)

static const Property qhca_properties[] = {
    DEFINE_NIC_PROPERTIES(QhcaState, conf),
    CFG_PROP_U16("vectors", num_vectors),
    CFG_PROP("doorbell-pages", num_db_pages, qdev_prop_uint32, uint32_t),
    CFG_PROP_U8("log-max-pt", log_max_pt),
    CFG_PROP_U8("log-max-qp", log_max_qp),
    CFG_PROP_U8("log-max-cq", log_max_cq),
    CFG_PROP_U8("log-max-srq", log_max_srq),
    CFG_PROP_U8("log-max-eq", log_max_eq),
    CFG_PROP_U8("log-max-wq-depth", log_max_wq_depth),
    CFG_PROP_U8("log-max-cq-depth", log_max_cq_depth),
    CFG_PROP_U8("log-max-eq-depth", log_max_eq_depth),
    CFG_PROP_U16("gids", num_gids),
    CFG_PROP_U16("pool-blocks", max_pool_blocks),
    CFG_PROP_U16("pool-keys", max_pool_keys),
    CFG_PROP_U16("mcast-members", max_mcast_members),
    CFG_PROP_U16("flows", max_flows),
    CFG_PROP_CACHE("pt", QHCA_CACHE_PT),
    CFG_PROP_CACHE("at", QHCA_CACHE_AT),
    CFG_PROP_CACHE("qp", QHCA_CACHE_QD),
    CFG_PROP_CACHE("cq", QHCA_CACHE_CQ),
    CFG_PROP_CACHE("srq", QHCA_CACHE_SRQ),
    CFG_PROP_U16("s2-cache-sets", s2_default.sets),
    CFG_PROP_U16("s2-cache-blocks", s2_default.blocks),
    CFG_PROP_U16("s2-cache-max-sets", s2_max.sets),
    CFG_PROP_U16("s2-cache-max-blocks", s2_max.blocks),
    /* in units of 100 Mb/s */
    CFG_PROP("link-speed", link_speed, qdev_prop_uint32, uint32_t),
    CFG_PROP("max-bundle", max_bundle, qdev_prop_uint32, uint32_t),
    CFG_PROP("features", features, qdev_prop_uint64, uint64_t),
    CFG_PROP("rxe-flush", rxe_flush, qdev_prop_bool, bool),
    DEFINE_PROP_SIZE("devmem-size", QhcaState, pf.devmem_size, 1 * MiB),
    DEFINE_PROP_UINT16("sriov-vfs", QhcaState, sriov_vfs, 0),
    VF_PROP_U16("vf-vectors", num_vectors),
    VF_PROP("vf-doorbell-pages", num_db_pages, qdev_prop_uint32, uint32_t),
    VF_PROP_U8("vf-log-max-pt", log_max_pt),
    VF_PROP_U8("vf-log-max-qp", log_max_qp),
    VF_PROP_U8("vf-log-max-cq", log_max_cq),
    VF_PROP_U8("vf-log-max-srq", log_max_srq),
    VF_PROP_U16("vf-gids", num_gids),
    DEFINE_PROP_SIZE("vf-devmem-size", QhcaState, vf_devmem_size, 0),
    DEFINE_PROP_STRING("vf-block-masks", QhcaState, vf_block_masks),
    DEFINE_PROP_UINT32("inline-budget", QhcaState, inline_budget, 16),
    DEFINE_PROP_UINT32("thread-budget", QhcaState, thread_budget, 32),
    DEFINE_PROP_UINT32("poll-max-us", QhcaState, poll_max_us, 0),
    DEFINE_PROP_UINT32("poll-idle-us", QhcaState, poll_idle_us, 50),
    DEFINE_PROP_UINT32("await-max-us", QhcaState, await_max_us, 60),
    DEFINE_PROP_UINT32("sched-slice-us", QhcaState, slice_us, 100),
    DEFINE_PROP_UINT32("yield-max-us", QhcaState, yield_max_us, 1000),
    DEFINE_PROP_SIZE32("tx-ring-size", QhcaState, tx_ring_size, 256 * KiB),
    DEFINE_PROP_SIZE32("rx-ring-size", QhcaState, rx_ring_size, 256 * KiB),
    DEFINE_PROP_STRING("shm", QhcaState, link.path),
    DEFINE_PROP_BOOL("shm-server", QhcaState, link.server, false),
    DEFINE_PROP_UINT32("shm-slots", QhcaState, link.slots, 256),
    DEFINE_PROP_BOOL("shm-icrc", QhcaState, link.icrc, false),
};

static bool qhca_props_check_ring(const char *name, uint32_t size, Error **errp)
{
    if (!is_power_of_2(size) || size < 32 * KiB || size > 16 * MiB) {
        error_setg(errp, "%s=%u is not a power of two from 32K to 16M",
                   name, size);
        return false;
    }
    return true;
}

static bool qhca_props_check_budget(const char *name, uint32_t budget,
                                    Error **errp)
{
    if (budget < 1 || budget > 1024) {
        error_setg(errp, "%s=%u is not in the range 1 to 1024", name, budget);
        return false;
    }
    return true;
}

static bool qhca_props_check_devmem(const char *name, uint64_t size,
                                    Error **errp)
{
    if (size && (!is_power_of_2(size) || size < 4 * KiB || size > 4 * GiB)) {
        error_setg(errp, "%s=%" PRIu64 " is neither 0 nor a power of two from "
                   "4K to 4G", name, size);
        return false;
    }
    return true;
}

static bool qhca_props_check_pages(const char *name, uint32_t pages,
                                   Error **errp)
{
    if (!is_power_of_2(pages) || pages > 64 * KiB) {
        error_setg(errp, "%s=%u is not a power of two up to 65536", name,
                   pages);
        return false;
    }
    return true;
}

/* Masks of cache blocks, one for each virtual function: "0x3:0xc". */
static bool qhca_props_parse_masks(QhcaState *s, Error **errp)
{
    g_auto(GStrv) mask = g_strsplit(s->vf_block_masks ?: "", ":", -1);
    uint64_t value;

    if (g_strv_length(mask) > s->sriov_vfs) {
        error_setg(errp, "vf-block-masks=%s has more masks than the %u of "
                   "sriov-vfs", s->vf_block_masks, s->sriov_vfs);
        return false;
    }
    for (int i = 0; mask[i]; i++) {
        if (qemu_strtou64(mask[i], NULL, 0, &value) || value > UINT16_MAX) {
            error_setg(errp, "vf-block-masks=%s: '%s' is not a mask of 16 bits",
                       s->vf_block_masks, mask[i]);
            return false;
        }
        s->vf_blocks[i] = value;
    }
    return true;
}

static bool qhca_props_check_vfs(QhcaState *s, Error **errp)
{
    if (!s->sriov_vfs) {
        return true;
    }
    if (!QHCA_QEMU_MAPS_VFS) {
        error_setg(errp, "sriov-vfs=%u needs QEMU 10.0.6 or 10.1.2: the BARs "
                   "of virtual functions do not work in this one",
                   s->sriov_vfs);
        return false;
    }
    if (s->sriov_vfs > QHCA_MAX_VFS) {
        error_setg(errp, "sriov-vfs=%u is over %u", s->sriov_vfs,
                   QHCA_MAX_VFS);
        return false;
    }
    if (s->vf_cfg.num_vectors < 1 ||
        s->vf_cfg.num_vectors > QHCA_MAX_VECTORS) {
        error_setg(errp, "vf-vectors=%u is not in the range 1 to %u",
                   s->vf_cfg.num_vectors, QHCA_MAX_VECTORS);
        return false;
    }
    return qhca_props_check_pages("vf-doorbell-pages", s->vf_cfg.num_db_pages,
                                  errp) &&
           qhca_props_check_devmem("vf-devmem-size", s->vf_devmem_size, errp) &&
           qhca_props_parse_masks(s, errp);
}

static bool qhca_props_check_link(QhcaState *s, Error **errp)
{
    if (s->link.path && !*s->link.path) {
        g_clear_pointer(&s->link.path, g_free);     /* as if it were not set */
    }
    if (!s->link.path && s->link.server) {
        error_setg(errp, "shm-server=on needs shm, the path of a socket");
        return false;
    }
    if (s->link.path && s->conf.peers.ncs[0]) {
        error_setg(errp, "shm=%s and netdev=%s exclude each other",
                   s->link.path, s->conf.peers.ncs[0]->name);
        return false;
    }
    if (!is_power_of_2(s->link.slots) || s->link.slots < 4 ||
        s->link.slots > 4096) {
        error_setg(errp, "shm-slots=%u is not a power of two from 4 to 4096",
                   s->link.slots);
        return false;
    }
    return true;
}

/* Check what the engine cannot; qhca_create() checks the rest. */
bool qhca_props_check(QhcaState *s, Error **errp)
{
    struct qhca_config defaults;

    if (s->cfg.num_vectors == 0) {
        /* -nic passes this value to any model that has the property. */
        qhca_config_default(&defaults);
        s->cfg.num_vectors = defaults.num_vectors;
    }
    if (s->cfg.num_vectors > QHCA_MAX_VECTORS) {
        error_setg(errp, "vectors=%u is over %u", s->cfg.num_vectors,
                   QHCA_MAX_VECTORS);
        return false;
    }
    if (s->slice_us && (s->slice_us < 100 || s->slice_us > 100000)) {
        error_setg(errp, "sched-slice-us=%u is neither 0 nor 100 to 100000",
                   s->slice_us);
        return false;
    }
    if (s->yield_max_us > 1000000) {
        error_setg(errp, "yield-max-us=%u is over 1000000", s->yield_max_us);
        return false;
    }
    if (s->poll_max_us > 1000) {
        error_setg(errp, "poll-max-us=%u is over 1000", s->poll_max_us);
        return false;
    }
    if (s->poll_idle_us > 1000) {
        error_setg(errp, "poll-idle-us=%u is over 1000", s->poll_idle_us);
        return false;
    }
    if (s->await_max_us > 1000) {
        error_setg(errp, "await-max-us=%u is over 1000", s->await_max_us);
        return false;
    }
    return qhca_props_check_pages("doorbell-pages", s->cfg.num_db_pages,
                                  errp) &&
           qhca_props_check_devmem("devmem-size", s->pf.devmem_size, errp) &&
           qhca_props_check_vfs(s, errp) &&
           qhca_props_check_link(s, errp) &&
           qhca_props_check_budget("inline-budget", s->inline_budget, errp) &&
           qhca_props_check_budget("thread-budget", s->thread_budget, errp) &&
           qhca_props_check_ring("tx-ring-size", s->tx_ring_size, errp) &&
           qhca_props_check_ring("rx-ring-size", s->rx_ring_size, errp);
}

/*
 * ------------------------------------------------------------------------
 * Fault injection.  Once there is an engine, it holds the settings.
 */
static const struct {
    const char *name;
    const char *what;
} qhca_inject_kinds[QHCA_NUM_INJECT_KINDS] = {
    [QHCA_INJECT_DROP]      = { "drop", "lost" },
    [QHCA_INJECT_DUPLICATE] = { "duplicate", "sent twice" },
    [QHCA_INJECT_REORDER]   = { "reorder", "overtaken by the next" },
    [QHCA_INJECT_CORRUPT]   = { "corrupt", "changed in one bit" },
    [QHCA_INJECT_DELAY]     = { "delay", "held for inject-delay-ns" },
};

static void qhca_inject_read(QhcaState *s, struct qhca_inject_config *cfg)
{
    if (qhca_enter(s)) {
        qhca_inject_get(s->hca, cfg);
        qhca_leave(s);
    } else {
        *cfg = s->inject;
    }
}

static void qhca_inject_write(QhcaState *s,
                              const struct qhca_inject_config *cfg,
                              Error **errp)
{
    char err[160] = "";

    if (qhca_enter(s)) {
        if (!qhca_inject_set(s->hca, cfg, err, sizeof(err))) {
            error_setg(errp, "%s", err);
        }
        qhca_leave(s);
    } else {
        s->inject = *cfg;       /* checked when there is an engine */
    }
}

static void qhca_inject_get_ppm(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    struct qhca_inject_config cfg;

    qhca_inject_read(QHCA(obj), &cfg);
    visit_type_uint32(v, name, &cfg.rule[(uintptr_t)opaque].ppm, errp);
}

static void qhca_inject_set_ppm(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    struct qhca_inject_config cfg;
    uint32_t ppm;

    if (!visit_type_uint32(v, name, &ppm, errp)) {
        return;
    }
    if (ppm > 1000000) {
        error_setg(errp, "%s=%u is over 1000000", name, ppm);
        return;
    }
    qhca_inject_read(QHCA(obj), &cfg);
    cfg.rule[(uintptr_t)opaque].ppm = ppm;
    qhca_inject_write(QHCA(obj), &cfg, errp);
}

static void qhca_inject_get_nth(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    struct qhca_inject_config cfg;

    qhca_inject_read(QHCA(obj), &cfg);
    visit_type_uint64(v, name, &cfg.rule[(uintptr_t)opaque].nth, errp);
}

static void qhca_inject_set_nth(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    struct qhca_inject_config cfg;
    uint64_t nth;

    if (!visit_type_uint64(v, name, &nth, errp)) {
        return;
    }
    qhca_inject_read(QHCA(obj), &cfg);
    cfg.rule[(uintptr_t)opaque].nth = nth;
    qhca_inject_write(QHCA(obj), &cfg, errp);
}

static void qhca_inject_get_u64(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    struct qhca_inject_config cfg;

    qhca_inject_read(QHCA(obj), &cfg);
    visit_type_uint64(v, name,
                      (uint64_t *)((char *)&cfg + (uintptr_t)opaque), errp);
}

static void qhca_inject_set_u64(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    struct qhca_inject_config cfg;
    uint64_t value;

    if (!visit_type_uint64(v, name, &value, errp)) {
        return;
    }
    qhca_inject_read(QHCA(obj), &cfg);
    *(uint64_t *)((char *)&cfg + (uintptr_t)opaque) = value;
    qhca_inject_write(QHCA(obj), &cfg, errp);
}

static char *qhca_inject_get_direction(Object *obj, Error **errp)
{
    struct qhca_inject_config cfg;

    qhca_inject_read(QHCA(obj), &cfg);
    return g_strdup(cfg.on_rx && cfg.on_tx ? "both" :
                    cfg.on_rx ? "rx" : cfg.on_tx ? "tx" : "none");
}

static void qhca_inject_set_direction(Object *obj, const char *value,
                                      Error **errp)
{
    struct qhca_inject_config cfg;
    bool both = !strcmp(value, "both");
    bool rx = both || !strcmp(value, "rx");
    bool tx = both || !strcmp(value, "tx");

    if (!rx && !tx) {
        error_setg(errp, "inject-direction=%s is not rx, tx or both", value);
        return;
    }
    qhca_inject_read(QHCA(obj), &cfg);
    cfg.on_rx = rx;
    cfg.on_tx = tx;
    qhca_inject_write(QHCA(obj), &cfg, errp);
}

/* Setting this kills the device, as a fault of its own would. */
static bool qhca_inject_get_fatal(Object *obj, Error **errp)
{
    struct qhca_port_info port = { };
    QhcaState *s = QHCA(obj);

    if (qhca_enter(s)) {
        qhca_query_port(s->hca, 0, &port);
        qhca_leave(s);
    }
    return port.fatal;
}

static void qhca_inject_set_fatal(Object *obj, bool value, Error **errp)
{
    QhcaState *s = QHCA(obj);

    if (!value) {
        error_setg(errp, "only a reset ends a fatal error");
    } else if (qhca_enter(s)) {
        qhca_inject_fatal(s->hca, 0);
        qhca_leave(s);
    } else {
        error_setg(errp, "the device is not realized");
    }
}

static void qhca_inject_class_init(ObjectClass *klass)
{
    for (uintptr_t kind = 0; kind < QHCA_NUM_INJECT_KINDS; kind++) {
        const char *name = qhca_inject_kinds[kind].name;
        g_autofree char *ppm = g_strdup_printf("inject-%s-ppm", name);
        g_autofree char *nth = g_strdup_printf("inject-%s-nth", name);
        g_autofree char *ppm_help =
            g_strdup_printf("RDMA frames in a million that are %s",
                            qhca_inject_kinds[kind].what);
        g_autofree char *nth_help =
            g_strdup_printf("the n-th RDMA frame from now is %s; 0: none",
                            qhca_inject_kinds[kind].what);

        object_class_property_add(klass, ppm, "uint32", qhca_inject_get_ppm,
                                  qhca_inject_set_ppm, NULL, (void *)kind);
        object_class_property_set_description(klass, ppm, ppm_help);
        object_class_property_add(klass, nth, "uint64", qhca_inject_get_nth,
                                  qhca_inject_set_nth, NULL, (void *)kind);
        object_class_property_set_description(klass, nth, nth_help);
    }
    object_class_property_add(klass, "inject-delay-ns", "uint64",
                              qhca_inject_get_u64, qhca_inject_set_u64, NULL,
                              (void *)offsetof(struct qhca_inject_config,
                                               delay_ns));
    object_class_property_set_description(klass, "inject-delay-ns",
                                          "how long a frame is delayed");
    object_class_property_add(klass, "inject-seed", "uint64",
                              qhca_inject_get_u64, qhca_inject_set_u64, NULL,
                              (void *)offsetof(struct qhca_inject_config,
                                               seed));
    object_class_property_set_description(klass, "inject-seed",
        "of the choice of frames: the same seed, the same choice");
    object_class_property_add_str(klass, "inject-direction",
                                  qhca_inject_get_direction,
                                  qhca_inject_set_direction);
    object_class_property_set_description(klass, "inject-direction",
                                          "rx, tx or both");
    object_class_property_add_bool(klass, "inject-fatal",
                                   qhca_inject_get_fatal,
                                   qhca_inject_set_fatal);
    object_class_property_set_description(klass, "inject-fatal",
        "set to declare the device dead; reads whether it is");
}

/*
 * ------------------------------------------------------------------------
 * The time charged for a cache miss: experimental; 0 switches it off.
 */
static void qhca_cost_read(QhcaState *s, struct qhca_fetch_cost *cost)
{
    if (qhca_enter(s)) {
        qhca_fetch_cost_get(s->hca, cost);
        qhca_leave(s);
    } else {
        *cost = s->fetch_cost;
    }
}

static void qhca_cost_get(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    struct qhca_fetch_cost cost;

    qhca_cost_read(QHCA(obj), &cost);
    visit_type_uint32(v, name,
                      (uint32_t *)((char *)&cost + (uintptr_t)opaque), errp);
}

static void qhca_cost_set(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    QhcaState *s = QHCA(obj);
    struct qhca_fetch_cost cost;
    char err[160] = "";
    uint32_t ns;

    if (!visit_type_uint32(v, name, &ns, errp)) {
        return;
    }
    qhca_cost_read(s, &cost);
    *(uint32_t *)((char *)&cost + (uintptr_t)opaque) = ns;
    if (qhca_enter(s)) {
        if (!qhca_fetch_cost_set(s->hca, &cost, err, sizeof(err))) {
            error_setg(errp, "%s", err);
        }
        qhca_leave(s);
    } else {
        s->fetch_cost = cost;   /* checked when there is an engine */
    }
}

static void qhca_cost_class_init(ObjectClass *klass)
{
    static const struct {
        const char *name;
        const char *what;
        size_t offset;
    } cost[] = {
        { "x-pt-fetch-ns",
          "nanoseconds charged for each protection entry read; 0: none",
          offsetof(struct qhca_fetch_cost, pt_ns) },
        { "x-at-fetch-ns",
          "nanoseconds charged for each translation node read; 0: none",
          offsetof(struct qhca_fetch_cost, at_ns) },
        { "x-context-fetch-ns",
          "nanoseconds charged for each queue context read; 0: none",
          offsetof(struct qhca_fetch_cost, context_ns) },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cost); i++) {
        object_class_property_add(klass, cost[i].name, "uint32", qhca_cost_get,
                                  qhca_cost_set, NULL,
                                  (void *)cost[i].offset);
        object_class_property_set_description(klass, cost[i].name,
                                              cost[i].what);
    }
}

void qhca_props_class_init(ObjectClass *klass)
{
    device_class_set_props(DEVICE_CLASS(klass), qhca_properties);
    qhca_inject_class_init(klass);
    qhca_cost_class_init(klass);
    qhca_link_class_init(klass);
    qhca_dump_class_init(klass);
    qhca_timeline_class_init(klass);
}

void qhca_props_instance_init(QhcaState *s)
{
    qhca_config_default(&s->cfg);
    /* BAR 0 and BAR 2 fit the 2 MiB that firmware leaves to a hot-plug port. */
    s->cfg.num_db_pages = 256;
    /* An eighth of the default rings. */
    s->cfg.max_bundle = 32 * KiB;
    /* A virtual function serves one virtual machine or container. */
    qhca_config_default(&s->vf_cfg);
    s->vf_cfg.num_vectors = 8;
    s->vf_cfg.num_db_pages = 64;
    s->vf_cfg.log_max_pt = 16;
    s->vf_cfg.log_max_qp = 12;
    s->vf_cfg.log_max_cq = 12;
    s->vf_cfg.log_max_srq = 10;
    s->vf_cfg.num_gids = 32;
    qhca_dump_init(s);
    s->inject.on_rx = true;
    s->inject.on_tx = true;
    s->inject.seed = 1;
}
