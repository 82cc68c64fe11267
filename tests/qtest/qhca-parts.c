/*
 * What the tests share that link files of the qhca RDMA adapter: the parts of QEMU,
 * of the engine and of the adapter that these files need and that do nothing
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie_sriov.h"
#include "system/qtest.h"
#include "system/runstate.h"
#include "system/tcg.h"
#include "qhca-parts.h"

/*
 * ------------------------------------------------------------------------
 * The engine
 */
uint64_t parts_messages, parts_acks;

uint64_t qhca_counter(const struct qhca_hca *hca, uint16_t gvmi,
                      enum qhca_counter id)
{
    return id == QHCA_CNT_tx_acks && !gvmi ? parts_acks : 0;
}

uint64_t qhca_answered(const struct qhca_hca *hca, uint16_t gvmi)
{
    return gvmi ? 0 : parts_messages;
}

struct qhca_run_result qhca_run(struct qhca_hca *hca, uint64_t now,
                                unsigned int budget)
{
    return (struct qhca_run_result) { .deadline = QHCA_NEVER };
}

void qhca_timers_are_cheap(struct qhca_hca *hca, bool cheap)
{
}

void qhca_tx_ready(struct qhca_hca *hca, uint64_t now)
{
}

/*
 * ------------------------------------------------------------------------
 * The rest of the adapter
 */
void qhca_trace_refresh(QhcaState *hca)
{
}

void qhca_net_flush(QhcaState *hca)
{
}

void qhca_net_receive_pending(QhcaState *hca, unsigned int frames)
{
}

void qhca_migrate_freeze(QhcaState *hca)
{
}

void qhca_migrate_thaw(QhcaState *hca)
{
}

void qhca_reset_function(QhcaFunction *f, QhcaReset kind)
{
    g_assert_not_reached();
}

bool qhca_in_d0(PCIDevice *dev)
{
    return true;
}

void qhca_link_check(QhcaState *hca)
{
}

void qhca_link_vm_change(QhcaState *hca, bool running, RunState state)
{
}

/*
 * ------------------------------------------------------------------------
 * QEMU
 */
/* Only the test's main thread ever needs it. */
static bool bql_dropped;
unsigned int parts_bql_wait_us;

void bql_lock_impl(const char *file, int line)
{
    g_assert_true(bql_dropped);
    g_usleep(parts_bql_wait_us);
    bql_dropped = false;
}

void bql_unlock(void)
{
    g_assert_true(bql_locked());
    g_assert_false(bql_dropped);
    bql_dropped = true;
}

bool parts_bql_dropped(void)
{
    return bql_dropped;
}

void bql_block_unlock(bool increase)
{
}

bool tcg_allowed;
bool qtest_allowed;
CPUTailQ cpus_queue = QTAILQ_HEAD_INITIALIZER(cpus_queue);
#ifdef qemu_tcg_mttcg_enabled   /* before QEMU 10.1 */
bool mttcg_enabled;
#else
bool qemu_tcg_mttcg_enabled(void)
{
    return true;
}
#endif

AddressSpace address_space_memory;
__thread CPUState *current_cpu;
MemoryListener *memory_listener;

AddressSpace *pci_device_iommu_address_space(PCIDevice *dev)
{
    return &address_space_memory;
}

void memory_listener_register(MemoryListener *listener, AddressSpace *as)
{
    memory_listener = listener;
}

void memory_listener_unregister(MemoryListener *listener)
{
    memory_listener = NULL;
}

void memory_region_unref(MemoryRegion *mr)
{
    g_assert_not_reached();
}

int msix_enabled(PCIDevice *dev)
{
    return false;
}

void msix_notify(PCIDevice *dev, unsigned int vector)
{
    g_assert_not_reached();
}

RunState runstate_get(void)
{
    return RUN_STATE_RUNNING;
}

VMChangeStateEntry *
qemu_add_vm_change_state_handler(VMChangeStateHandler *cb, void *opaque)
{
    return NULL;
}

void qemu_del_vm_change_state_handler(VMChangeStateEntry *e)
{
}

void qemu_register_wakeup_notifier(Notifier *notifier)
{
    static NotifierList list = NOTIFIER_LIST_INITIALIZER(list);

    notifier_list_add(&list, notifier);
}

NetClientState *qemu_get_queue(NICState *nic)
{
    g_assert_not_reached();
}

void qemu_flush_queued_packets(NetClientState *nc)
{
    g_assert_not_reached();
}

static const TypeInfo types[] = {
    {
        .name = TYPE_DEVICE,
        .parent = TYPE_OBJECT,
        .instance_size = sizeof(DeviceState),
        .abstract = true,
    }, {
        .name = TYPE_PCI_DEVICE,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(PCIDevice),
        .abstract = true,
    }, {
        .name = TYPE_QHCA,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(QhcaState),
    },
};

void parts_init(int *argc, char ***argv)
{
    g_test_init(argc, argv, NULL);
    module_call_init(MODULE_INIT_QOM);
    type_register_static_array(types, ARRAY_SIZE(types));
    qemu_init_main_loop(&error_abort);
}

QhcaState *parts_new_device(void)
{
    QhcaState *s = QHCA(object_new(TYPE_QHCA));

    s->pf.s = s;
    s->pf.dev = PCI_DEVICE(s);
    s->fn[0] = &s->pf;
    s->tx_ring_size = s->rx_ring_size = 64 * KiB;
    s->link.path = g_strdup("none");
    s->hca = (struct qhca_hca *)s;
    return s;
}

void parts_free_device(QhcaState *s)
{
    g_free(s->link.path);
    object_unref(OBJECT(s));
}
