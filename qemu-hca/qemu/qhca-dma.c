/*
 * qhca adapter: the engine's access to the guest's memory
 *
 * DMA reaches RAM only.  The adapter refuses accesses to registers of other
 * devices: through them a guest could make the engine call itself, or wait for
 * the BQL while it holds the engine's lock.
 *
 * The engine makes many small accesses, and looking each up in the memory map
 * would cost more than the access itself.  So the adapter keeps the few large
 * stretches of RAM that a guest has as windows.  A window holds a reference to
 * its region.  The adapter drops it when the function's address space changes,
 * which includes bus mastering.  QEMU calls the listener for a removal before
 * it publishes the new map, so from then until the commit the adapter makes no
 * window, which could be one of the old map.  With a vIOMMU there are no
 * windows, and every access is translated.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/rcu.h"
#include "hw/pci/pci.h"
#include "qhca-dev.h"
#include "trace.h"

static AddressSpace *qhca_dma_as(QhcaFunction *f)
{
    return pci_get_address_space(f->dev);
}

static bool qhca_dma_refused(QhcaFunction *f, hwaddr addr, size_t len,
                             bool write)
{
    f->s->stats.dma_refused++;
    trace_qhca_dma_refused(f->s, f->gvmi, addr, len, write);
    return false;
}

/* RAM that is part of a device's BAR counts as a device, too. */
static bool qhca_dma_is_memory(MemoryRegion *mr)
{
    return memory_region_is_ram(mr) &&
           !object_dynamic_cast(memory_region_owner(mr), TYPE_PCI_DEVICE);
}

/*
 * The host address of @addr, for at most *@len bytes; NULL if it is not RAM.
 *
 * As a request of PCI Express has, what is translated is the address of a double
 * word.  QEMU's virtio-iommu searches for the mapping of the byte and the one
 * behind it, so that it may take the last byte of a mapping for one of the next.
 */
static MemoryRegion *qhca_dma_translate(QhcaFunction *f, hwaddr addr,
                                        hwaddr *offset, hwaddr *len, bool write)
{
    const MemTxAttrs attrs = {
        .memory = 1,
        .requester_id = pci_requester_id(f->dev),
    };
    const hwaddr skipped = addr & 3;
    MemoryRegion *mr;

    *len += skipped;
    mr = address_space_translate(qhca_dma_as(f), addr - skipped, offset, len,
                                 write, attrs);
    if (!qhca_dma_is_memory(mr) || *len <= skipped ||
        !memory_access_is_direct(mr, write, attrs)) {
        return NULL;
    }
    *offset += skipped;
    *len -= skipped;
    return mr;
}

static void qhca_dma_set_ram(MemoryRegionCache *ram, MemoryRegion *mr,
                             hwaddr offset, hwaddr len)
{
    *ram = (MemoryRegionCache) {
        .ptr = qemu_map_ram_ptr(mr->ram_block, offset),
        .xlat = offset,
        .len = len,
        .mrs = { .mr = mr },
        .is_write = true,
    };
}

static QhcaDmaWindow *qhca_dma_window(QhcaFunction *f, hwaddr addr, size_t len)
{
    for (int i = 0; i < QHCA_DMA_WINDOWS; i++) {
        QhcaDmaWindow *w = &f->dma[i];

        if (addr >= w->first && addr <= w->last && len - 1 <= w->last - addr) {
            return w;
        }
    }
    return NULL;
}

static void qhca_dma_close(QhcaDmaWindow *w)
{
    if (w->ram.mrs.mr) {
        memory_region_unref(w->ram.mrs.mr);
    }
    *w = (QhcaDmaWindow) { .first = 1, .last = 0 };
}

static void qhca_dma_close_all(QhcaFunction *f)
{
    for (int i = 0; i < QHCA_DMA_WINDOWS; i++) {
        qhca_dma_close(&f->dma[i]);
    }
}

/* Called within an RCU critical section. */
static void qhca_dma_open(QhcaFunction *f, hwaddr addr)
{
    QhcaDmaWindow *w = &f->dma[f->dma_next];
    hwaddr offset, len = HWADDR_MAX - addr;
    MemoryRegion *mr;

    if (f->dma_iommu || f->dma_changing || !len) {
        return;
    }
    mr = qhca_dma_translate(f, addr, &offset, &len, true);
    if (!mr) {
        return;
    }
    /* A window that was made from the middle of a stretch grows downwards. */
    for (int i = 0; i < QHCA_DMA_WINDOWS; i++) {
        if (f->dma[i].ram.mrs.mr == mr && f->dma[i].last == addr + len - 1) {
            w = &f->dma[i];
        }
    }
    if (w == &f->dma[f->dma_next]) {
        f->dma_next = (f->dma_next + 1) % QHCA_DMA_WINDOWS;
    }
    /*
     * The old reference may be dropped first: it is not the last one while
     * the map of this critical section has the region.
     */
    memory_region_ref(mr);
    qhca_dma_close(w);
    w->first = addr;
    w->last = addr + len - 1;
    qhca_dma_set_ram(&w->ram, mr, offset, len);
    f->s->stats.dma_windows_filled++;
    trace_qhca_dma_window(f->s, f->gvmi, w->first, w->last);
}

/* As memcpy(), by a single access where that is possible. */
static inline void qhca_dma_copy(void *to, const void *from, size_t len)
{
    uintptr_t both = (uintptr_t)to | (uintptr_t)from;

    if (len == 8 && !(both & 7)) {
        qatomic_set__nocheck((uint64_t *)to,
                             qatomic_read__nocheck((const uint64_t *)from));
    } else if (len == 4 && !(both & 3)) {
        qatomic_set((uint32_t *)to, qatomic_read((const uint32_t *)from));
    } else {
        memcpy(to, from, len);
    }
}

/* Guest memory is aligned for these two; the engine's buffer need not be. */
static void qhca_dma_load(void *buf, const void *ram, size_t len)
{
    uint64_t bounce;

    if ((len == 4 || len == 8) && !((uintptr_t)ram & (len - 1))) {
        qhca_dma_copy(&bounce, ram, len);
        memcpy(buf, &bounce, len);
    } else {
        memcpy(buf, ram, len);
    }
}

/* Payload for the peer goes where its processor reads it; all else stays near this one. */
static void qhca_dma_fetch(QhcaState *s, void *buf, const void *ram, size_t len)
{
    if (len >= HCA_STREAMING_MIN && qhca_link_is_room(s, buf)) {
        s->stats.copies_streamed += hca_streaming_copy(&s->link.streaming, buf, ram, len);
    } else {
        qhca_dma_load(buf, ram, len);
    }
}

static void qhca_dma_store(void *ram, const void *buf, size_t len)
{
    uint64_t bounce;

    if ((len == 4 || len == 8) && !((uintptr_t)ram & (len - 1))) {
        memcpy(&bounce, buf, len);
        qhca_dma_copy(ram, &bounce, len);
    } else {
        memcpy(ram, buf, len);
    }
}

/* Make an access that no window covers, in pieces. */
static bool qhca_dma_walk(QhcaFunction *f, hwaddr addr, uint8_t *buf,
                          size_t len, bool write)
{
    RCU_READ_LOCK_GUARD();

    if (len - 1 > HWADDR_MAX - addr) {
        return qhca_dma_refused(f, addr, len, write);
    }
    qhca_dma_open(f, addr);
    while (len) {
        MemoryRegionCache ram;
        hwaddr offset, part = len;
        MemoryRegion *mr = qhca_dma_translate(f, addr, &offset, &part, write);

        if (!mr) {
            return qhca_dma_refused(f, addr, len, write);
        }
        qhca_dma_set_ram(&ram, mr, offset, part);
        if (write) {
            qhca_dma_store(ram.ptr, buf, part);
            address_space_cache_invalidate(&ram, 0, part);
        } else {
            qhca_dma_fetch(f->s, buf, ram.ptr, part);
        }
        addr += part;
        buf += part;
        len -= part;
    }
    return true;
}

bool qhca_host_may_dma(void *host, uint16_t gvmi)
{
    QhcaState *s = host;

    return pci_get_word(s->fn[gvmi]->dev->config + PCI_COMMAND) &
           PCI_COMMAND_MASTER;
}

int qhca_host_dma_read(void *host, struct qhca_requester who, uint64_t addr,
                       void *buf, size_t len)
{
    QhcaState *s = host;
    QhcaFunction *f = s->fn[who.gvmi];
    QhcaDmaWindow *w;

    if (!len) {
        return 0;
    }
    if (unlikely(!f)) {
        return -1;
    }
    if (f->dma_wrote) {
        smp_mb();       /* as on PCI Express, a read pushes writes */
        f->dma_wrote = false;
    }
    w = qhca_dma_window(f, addr, len);
    if (likely(w)) {
        qhca_dma_fetch(s, buf, w->ram.ptr + (addr - w->first), len);
    } else if (!qhca_dma_walk(f, addr, buf, len, false)) {
        return -1;
    }
    smp_rmb();          /* an index read before what it covers */
    return 0;
}

int qhca_host_dma_write(void *host, struct qhca_requester who, uint64_t addr,
                        const void *buf, size_t len)
{
    QhcaState *s = host;
    QhcaFunction *f = s->fn[who.gvmi];
    QhcaDmaWindow *w;

    if (!len) {
        return 0;
    }
    if (unlikely(!f)) {
        return -1;
    }
    f->dma_wrote = true;
    w = qhca_dma_window(f, addr, len);
    if (likely(w)) {
        qhca_dma_store(w->ram.ptr + (addr - w->first), buf, len);
        address_space_cache_invalidate(&w->ram, addr - w->first, len);
        return 0;
    }
    return qhca_dma_walk(f, addr, (uint8_t *)buf, len, true) ? 0 : -1;
}

int qhca_host_dma_write_release(void *host, struct qhca_requester who,
                                uint64_t addr, const void *buf, size_t len)
{
    QhcaState *s = host;
    QhcaFunction *f = s->fn[who.gvmi];
    size_t word = len == 8 && !(addr & 7) ? 8 : 4;
    const uint8_t *last = (const uint8_t *)buf + len - word;
    QhcaDmaWindow *w;

    assert(len >= 4);
    if (unlikely(!f)) {
        return -1;
    }
    w = qhca_dma_window(f, addr, len);
    if (likely(w)) {
        uint8_t *ram = w->ram.ptr + (addr - w->first);

        f->dma_wrote = true;
        memcpy(ram, buf, len - word);
        smp_wmb();      /* the last word after all the rest */
        qhca_dma_store(ram + len - word, last, word);
        address_space_cache_invalidate(&w->ram, addr - w->first, len);
        return 0;
    }
    if (qhca_host_dma_write(host, who, addr, buf, len - word)) {
        return -1;
    }
    smp_wmb();          /* the last word after all the rest */
    return qhca_host_dma_write(host, who, addr + len - word, last, word);
}

/*
 * A vIOMMU's fault may change the memory map while the engine is on the stack,
 * if the fault's interrupt is aimed at a BAR of some device.  With a vIOMMU
 * there are no windows.
 */
static bool qhca_dma_lock(QhcaState *s)
{
    if (s->in_engine) {
        return false;
    }
    qhca_lock(s);
    return true;
}

static void qhca_dma_region_del(MemoryListener *listener,
                                MemoryRegionSection *section)
{
    QhcaFunction *f = container_of(listener, QhcaFunction, listener);
    bool locked = qhca_dma_lock(f->s);

    f->dma_changing = true;
    qhca_dma_close_all(f);
    if (locked) {
        qhca_leave_undone(f->s);
    }
}

static void qhca_dma_commit(MemoryListener *listener)
{
    QhcaFunction *f = container_of(listener, QhcaFunction, listener);
    bool locked;

    /* Only region_del() sets it, in this thread. */
    if (f->dma_changing) {
        locked = qhca_dma_lock(f->s);
        f->dma_changing = false;
        if (locked) {
            qhca_leave_undone(f->s);
        }
    }
}

/*
 * The engine runs for all functions, so the DMA of one through a vIOMMU makes
 * the thread idle.
 */
static void qhca_dma_find_iommu(QhcaState *s)
{
    bool iommu = false;

    for (int i = 0; i <= s->sriov_vfs; i++) {
        iommu |= s->fn[i] && s->fn[i]->dma_iommu;
    }
    if (iommu != s->dma_iommu) {
        qatomic_set(&s->dma_iommu, iommu);
        qhca_change_hands(s);
    }
}

/* Whether DMA passes a vIOMMU is known when the machine is complete. */
void qhca_dma_reset(QhcaFunction *f)
{
    f->dma_iommu = pci_device_iommu_address_space(f->dev) !=
                   &address_space_memory;
    qhca_dma_find_iommu(f->s);
    qhca_dma_close_all(f);
}

void qhca_dma_init(QhcaFunction *f)
{
    qhca_dma_reset(f);
    f->listener = (MemoryListener) {
        .name = "qhca",
        .region_del = qhca_dma_region_del,
        .commit = qhca_dma_commit,
    };
    memory_listener_register(&f->listener, qhca_dma_as(f));
}

void qhca_dma_exit(QhcaFunction *f)
{
    /* This calls region_del() for every region. */
    memory_listener_unregister(&f->listener);
    qhca_dma_close_all(f);
    f->dma_changing = false;
}
