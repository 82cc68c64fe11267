/*
 * qhca adapter: migration and snapshots
 *
 * When the VM stops, the engine writes what the guest's memory must have, and
 * then leaves that memory alone (qhca_vm_change()).  QEMU sends the last of
 * the memory after that, and then the device's state: an image that the engine
 * has made.  On the other side the engine reads memory again only when the VM
 * runs, so the order in which memory and state arrive does not matter.
 *
 * The physical function's state is the state of the adapter, virtual functions
 * included.  What is a virtual function's own is its configuration space and
 * its MSI-X table.  QEMU resets a virtual function when it finds VF Enable in
 * the physical function's configuration space, so that one is loaded first.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "migration/qemu-file.h"
#include "migration/vmstate.h"
#include "net/eth.h"
#include "system/runstate.h"
#include "qhca-dev.h"
#include "trace.h"

/*
 * An image of the default configuration has less than 2 MiB.  Larger limits and virtual
 * functions add to that, and a function without Bus Master Enable adds its contexts that
 * have changed.  What is larger than this is refused where it is saved already.
 */
#define QHCA_MAX_IMAGE      (64 * MiB)

/*
 * ------------------------------------------------------------------------
 * The VM stops, and goes on
 */
void qhca_migrate_freeze(QhcaState *s)
{
    char err[300] = "";
    uint64_t now = qhca_now(s);

    /* What the guest has rung for, and what has come, is not on the way. */
    qhca_take_doorbells(s, now);
    if (!s->link.path) {
        qhca_net_receive_pending(s, UINT_MAX);
    }
    if (!qhca_freeze(s->hca, now, err, sizeof(err)) &&
        !qhca_is_frozen(s->hca)) {
        warn_report("qhca: %s while the VM stops", err);
    }
    /* The engine writes device memory without telling. */
    for (unsigned int i = 0; i < QHCA_MAX_FUNCTIONS; i++) {
        QhcaFunction *f = s->fn[i];

        if (f && f->devmem_size) {
            memory_region_set_dirty(&f->devmem, 0, f->devmem_size);
        }
    }
    s->more = false;
}

void qhca_migrate_thaw(QhcaState *s)
{
    s->started = true;
    s->loading = false;         /* also of a load that was refused elsewhere */
    /* The link is as it is here: the state may be of another time or place. */
    if (s->link.path) {
        qhca_set_link(s->hca, s->link.peer && !s->link.down, qhca_now(s));
    } else if (s->nic) {
        qhca_set_link(s->hca, !qemu_get_queue(s->nic)->link_down, qhca_now(s));
    }
    qhca_thaw(s->hca, qhca_now(s));
}

/*
 * ------------------------------------------------------------------------
 * The state
 */
static int qhca_pre_save(void *opaque)
{
    QhcaState *s = opaque;
    void *image = NULL;
    char err[300] = "it is in the middle of a call";
    size_t len = 0;

    /* A VM that was stopped before the migration does not stop for it. */
    if (runstate_check(RUN_STATE_FINISH_MIGRATE)) {
        qhca_link_vm_change(s, false, RUN_STATE_FINISH_MIGRATE);
    }
    if (qhca_enter(s)) {
        /* A VM that has not run since the device came did not stop, either. */
        if (!s->started) {
            qhca_migrate_freeze(s);
        }
        image = qhca_save(s->hca, &len, err, sizeof(err));
        qhca_leave_undone(s);
    }
    if (image && len > QHCA_MAX_IMAGE) {
        snprintf(err, sizeof(err), "it has %zu bytes, and nobody takes more than %llu",
                 len, (unsigned long long)QHCA_MAX_IMAGE);
        g_clear_pointer(&image, free);
    }
    if (!image) {
        error_report("qhca: the state cannot be saved: %s", err);
        return -EBUSY;
    }
    s->image = g_memdup2(image, len);
    s->image_len = len;
    free(image);
    trace_qhca_saved(s, len);
    return 0;
}

static void qhca_forget_image(QhcaState *s)
{
    g_clear_pointer(&s->image, g_free);
    s->image_len = 0;
}

static int qhca_post_save(void *opaque)
{
    qhca_forget_image(opaque);
    return 0;
}

/* Until the image has been loaded, a reset has nothing to reset. */
static int qhca_pre_load(void *opaque)
{
    QhcaState *s = opaque;

    qhca_forget_image(s);
    s->loading = true;
    return 0;
}

static bool qhca_load_image(QhcaState *s)
{
    char err[300] = "the device is in the middle of a call";
    bool ok = false;

    if (qhca_enter(s)) {
        ok = qhca_load(s->hca, s->image, s->image_len, err, sizeof(err));
        for (unsigned int i = 0; ok && i < QHCA_MAX_FUNCTIONS; i++) {
            QhcaFunction *f = s->fn[i];

            if (!f) {
                continue;
            }
            qhca_drop_pending(f);
            if (i) {
                /* They differ if VF Enable has changed in a stopped VM. */
                qhca_vf_follow(f);
            }
        }
        if (ok && !s->link.path) {
            /* Of all functions, which qhca_drop_pending() cannot know. */
            qhca_ring_discard(&s->tx);
            qhca_ring_discard(&s->rx);
        }
        qhca_leave_undone(s);
    }
    if (!ok) {
        error_report("qhca: the state is refused: %s", err);
    }
    return ok;
}

static int qhca_post_load(void *opaque, int version_id)
{
    QhcaState *s = opaque;
    bool ok = qhca_load_image(s);

    s->loading = false;
    trace_qhca_loaded(s, s->image_len);
    qhca_forget_image(s);
    return ok ? 0 : -EINVAL;
}

static bool qhca_image_len_ok(void *opaque, int version_id)
{
    QhcaState *s = opaque;

    return s->image_len <= QHCA_MAX_IMAGE;
}

/*
 * NumVFs of the configuration space that follows.  QEMU's PCI core enables as many virtual
 * functions as the register says when it has loaded it, and does not compare it with those
 * that there are, so this is done before.  The state itself has nothing here.
 */
static int qhca_check_num_vfs(QEMUFile *f, void *pv, size_t size,
                              const VMStateField *field)
{
    QhcaState *s = container_of(pv, QhcaState, sriov_vfs);
    PCIDevice *dev = PCI_DEVICE(s);
    /* PCIDevice has its version in front of the configuration space. */
    size_t cap = sizeof(uint32_t) + dev->exp.sriov_cap;
    size_t len = cap + PCI_EXT_CAP_SRIOV_SIZEOF;
    uint8_t *config;
    uint16_t vfs;

    if (!dev->exp.sriov_cap) {
        return 0;
    }
    /* From the beginning: QEMU reads no more if it has less than an offset. */
    if (qemu_peek_buffer(f, &config, len, 0) != len) {
        error_report("qhca: the state ends within the configuration space");
        return -EINVAL;
    }
    config += cap;
    vfs = pci_get_word(config + PCI_SRIOV_NUM_VF);
    if (pci_get_word(config + PCI_SRIOV_CTRL) & PCI_SRIOV_CTRL_VFE &&
        vfs > s->sriov_vfs) {
        error_report("qhca: the state is refused: %u virtual functions are "
                     "enabled there, and there are %u", vfs, s->sriov_vfs);
        return -EINVAL;
    }
    return 0;
}

static int qhca_put_nothing(QEMUFile *f, void *pv, size_t size,
                            const VMStateField *field, JSONWriter *vmdesc)
{
    return 0;
}

static const VMStateInfo qhca_num_vfs_info = {
    .name = "qhca-num-vfs",
    .get = qhca_check_num_vfs,
    .put = qhca_put_nothing,
};

const VMStateDescription qhca_vmstate = {
    .name = TYPE_QHCA,
    .version_id = 1,
    .minimum_version_id = 1,
    /* Before its virtual functions, which are realized first. */
    .priority = MIG_PRI_IOMMU,
    .pre_save = qhca_pre_save,
    .post_save = qhca_post_save,
    .pre_load = qhca_pre_load,
    .post_load = qhca_post_load,
    .fields = (const VMStateField[]) {
        /* In front of the configuration space, which has it as well. */
        VMSTATE_UINT16_EQUAL(sriov_vfs, QhcaState,
                             "the property sriov-vfs must be the same"),
        {
            .name = "num-vfs",
            .info = &qhca_num_vfs_info,
            .size = sizeof(uint16_t),
            .flags = VMS_SINGLE,
            .offset = offsetof(QhcaState, sriov_vfs),
        },
        VMSTATE_PCI_DEVICE(parent_obj, QhcaState),
        VMSTATE_MSIX(parent_obj, QhcaState),
        VMSTATE_UINT32(image_len, QhcaState),
        VMSTATE_VALIDATE("the image is too large", qhca_image_len_ok),
        VMSTATE_VBUFFER_ALLOC_UINT32(image, QhcaState, 1, NULL, image_len),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription qhca_vf_vmstate = {
    .name = TYPE_QHCA_VF,
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, QhcaVfState),
        VMSTATE_MSIX(parent_obj, QhcaVfState),
        VMSTATE_END_OF_LIST()
    }
};

/*
 * ------------------------------------------------------------------------
 * Arrival
 */

typedef struct QhcaSource {
    uint8_t mac[6];
    uint16_t vlan;
} QhcaSource;

/* RARP, as QEMU sends it for the address of the property. */
static void qhca_announce_source(NetClientState *nc, const QhcaSource *from)
{
    uint8_t frame[64] = { 0 }, *p = frame + 12;

    memset(frame, 0xff, 6);
    memcpy(frame + 6, from->mac, 6);
    if (from->vlan != QHCA_GID_NO_VLAN) {
        stw_be_p(p, ETH_P_VLAN);
        stw_be_p(p + 2, from->vlan);
        p += 4;
    }
    stw_be_p(p, 0x8035);            /* RARP */
    stw_be_p(p + 2, 1);             /* Ethernet */
    stw_be_p(p + 4, 0x0800);        /* IPv4 */
    p[6] = 6;
    p[7] = 4;
    stw_be_p(p + 8, 3);             /* request reverse */
    memcpy(p + 10, from->mac, 6);
    memcpy(p + 20, from->mac, 6);
    qemu_send_packet_raw(nc, frame, p + 48 - frame);
}

static void qhca_add_source(void *sources, const uint8_t *mac, uint16_t vlan)
{
    QhcaSource source = { .vlan = vlan };

    memcpy(source.mac, mac, sizeof(source.mac));
    g_array_append_val(sources, source);
}

/*
 * Switches learn where the functions are now.  The guest may have chosen other
 * addresses than that of the property, which QEMU announces itself, and a GID may have
 * one of its own.
 */
void qhca_announce(NetClientState *nc)
{
    QhcaState *s = qemu_get_nic_opaque(nc);
    g_autoptr(GArray) sources = g_array_new(false, false, sizeof(QhcaSource));

    if (!qhca_enter(s)) {
        return;
    }
    for (unsigned int i = 0; i < QHCA_MAX_FUNCTIONS; i++) {
        struct qhca_port_info port;

        if (s->fn[i] && s->fn[i]->dev->enabled) {
            qhca_query_port(s->hca, i, &port);
            if (port.link_up) {     /* else it may not send */
                qhca_for_each_source(s->hca, i, qhca_add_source, sources);
            }
        }
    }
    qhca_leave_undone(s);
    for (unsigned int i = 0; i < sources->len; i++) {
        qhca_announce_source(nc, &g_array_index(sources, QhcaSource, i));
    }
}
