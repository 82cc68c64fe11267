/*
 * qhca adapter: the engine's trace points as QEMU's trace events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qhca-dev.h"
#include "trace.h"

static const char *qhca_part_name(uint64_t part)
{
    static const char *const names[QHCA_NUM_QP_PARTS] = {
        [QHCA_PART_REQUESTER] = "requester",
        [QHCA_PART_RESPONDER] = "responder",
        [QHCA_PART_REQUESTER_FAULT] = "requester fault",
        [QHCA_PART_RESPONDER_FAULT] = "responder fault",
    };

    return part < ARRAY_SIZE(names) ? names[part] : "?";
}

static const char *qhca_part_state_name(uint64_t part, uint64_t state)
{
    const char *name = qhca_qp_part_state(part, state);

    return name ? name : "?";
}

void qhca_host_trace(void *host, uint16_t gvmi, enum qhca_trace_id id,
                     uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    QhcaState *s = host;

    if (unlikely(s->timeline.on)) {
        qhca_mark_trace(s, id, a, b, c);
    }
    switch (id) {
    case QHCA_TRACE_RESET:
        trace_qhca_reset(host, gvmi);
        break;
    case QHCA_TRACE_FATAL:
        trace_qhca_fatal(host, gvmi, a, b);
        break;
    case QHCA_TRACE_CMD:
        trace_qhca_cmd(host, gvmi, a, b, c, d);
        break;
    case QHCA_TRACE_DOORBELL:
        trace_qhca_doorbell(host, gvmi, a, b, c);
        break;
    case QHCA_TRACE_DOORBELL_IGNORED:
        trace_qhca_doorbell_ignored(host, gvmi, a, b, c);
        break;
    case QHCA_TRACE_EVENT:
        trace_qhca_event(host, gvmi, a, b, c);
        break;
    case QHCA_TRACE_COMPLETION:
        trace_qhca_completion(host, gvmi, a, b, c, d);
        break;
    case QHCA_TRACE_QP_STATE:
        trace_qhca_qp_state(host, gvmi, a, b, c);
        break;
    case QHCA_TRACE_TX:
        trace_qhca_tx(host, gvmi, a, b, c, d);
        break;
    case QHCA_TRACE_RX:
        trace_qhca_rx(host, gvmi, a, b, c, d);
        break;
    case QHCA_TRACE_NAK:
        trace_qhca_nak(host, gvmi, a, b, c);
        break;
    case QHCA_TRACE_RX_NAK:
        trace_qhca_rx_nak(host, gvmi, a, b, c);
        break;
    case QHCA_TRACE_TIMEOUT:
        trace_qhca_timeout(host, gvmi, a, b, c);
        break;
    case QHCA_TRACE_RX_DROP:
        trace_qhca_rx_drop(host, gvmi, a, b < QHCA_NUM_COUNTERS ?
                           qhca_counter_name(b) : "?");
        break;
    case QHCA_TRACE_PROTECTION:
        trace_qhca_protection(host, gvmi, a, b, c, d);
        break;
    case QHCA_TRACE_CACHE_MISS:
        trace_qhca_cache_miss(host, gvmi, a, b);
        break;
    case QHCA_TRACE_INVALIDATE:
        trace_qhca_invalidate(host, gvmi, a, b);
        break;
    case QHCA_TRACE_FAULT:
        trace_qhca_fault(host, gvmi, a, b, c, d);
        break;
    case QHCA_TRACE_RESUME:
        trace_qhca_resume(host, gvmi, a, b, c, d);
        break;
    case QHCA_TRACE_QP_PART:
        trace_qhca_qp_part(host, gvmi, a, qhca_part_name(b),
                           qhca_part_state_name(b, c),
                           qhca_part_state_name(b, d));
        break;
    case QHCA_NUM_TRACE_IDS:
        break;
    }
}

/* Trace events may be enabled at any time, so this checks from time to time. */
void qhca_trace_refresh(QhcaState *s)
{
    const struct {
        enum qhca_trace_id id;
        bool on;
    } event[] = {
#define EVENT(name) \
        { QHCA_TRACE_##name, trace_event_get_state_backends(TRACE_QHCA_##name) }
        EVENT(RESET), EVENT(FATAL), EVENT(CMD), EVENT(DOORBELL),
        EVENT(DOORBELL_IGNORED), EVENT(EVENT), EVENT(COMPLETION),
        EVENT(QP_STATE), EVENT(TX), EVENT(RX), EVENT(NAK), EVENT(RX_NAK),
        EVENT(TIMEOUT), EVENT(RX_DROP), EVENT(PROTECTION), EVENT(CACHE_MISS),
        EVENT(INVALIDATE), EVENT(FAULT), EVENT(RESUME), EVENT(QP_PART),
#undef EVENT
    };
    uint64_t mask = 0;

    QEMU_BUILD_BUG_ON(ARRAY_SIZE(event) != QHCA_NUM_TRACE_IDS);
    for (size_t i = 0; i < ARRAY_SIZE(event); i++) {
        if (event[i].on) {
            mask |= UINT64_C(1) << event[i].id;
        }
    }
    qhca_trace_mask(s->hca, mask | qhca_mark_mask(s));
}
