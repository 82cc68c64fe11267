/*
 * What the qtests of the qhca RDMA adapter's virtual functions share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qhca-sriov.h"

uint64_t ext_capability(Hca *h, uint16_t id)
{
    uint32_t at = PCI_CFG_SPACE_SIZE, header;

    do {
        header = qtest_readl(h->qts, ecam_of(h->dev) + at);
        if (PCI_EXT_CAP_ID(header) == id) {
            return ecam_of(h->dev) + at;
        }
        at = PCI_EXT_CAP_NEXT(header);
    } while (at);
    return 0;
}

Hca *hca_start_with_vfs(unsigned int vfs, const char *options)
{
    g_autofree char *all =
        g_strdup_printf("-device qhca,id=h0,addr=04.0,mac=52:54:00:0a:0b:0c,"
                        "sriov-vfs=%u%s", vfs, options);
    Hca *h = hca_new("q35", all);

    hca_map(h);
    return h;
}

static uint64_t sriov_bar(Sriov *s, int bar)
{
    return s->cap + PCI_SRIOV_BAR + bar * 4;
}

void sriov_open(Hca *h, Sriov *s)
{
    uint32_t vfs;

    *s = (Sriov) { .h = h };
    enable_ecam(h);
    s->cap = ext_capability(h, PCI_EXT_CAP_ID_SRIOV);
    g_assert_cmphex(s->cap, !=, 0);
    vfs = qtest_readw(h->qts, s->cap + PCI_SRIOV_TOTAL_VF);
    for (int bar = 0; bar < 6; bar += 2) {
        uint64_t mask;

        qtest_writel(h->qts, sriov_bar(s, bar), UINT32_MAX);
        qtest_writel(h->qts, sriov_bar(s, bar + 1), UINT32_MAX);
        mask = qtest_readq(h->qts, sriov_bar(s, bar));
        if (!mask) {
            continue;
        }
        s->size[bar] = -(mask & PCI_BASE_ADDRESS_MEM_MASK);
        h->bus->mmio_alloc_ptr = ROUND_UP(h->bus->mmio_alloc_ptr,
                                          s->size[bar]);
        s->bar[bar] = h->bus->mmio_alloc_ptr;
        h->bus->mmio_alloc_ptr += s->size[bar] * vfs;
    }
    sriov_map(s);
}

void sriov_map(Sriov *s)
{
    for (int bar = 0; bar < 6; bar += 2) {
        qtest_writel(s->h->qts, sriov_bar(s, bar), s->bar[bar]);
        qtest_writel(s->h->qts, sriov_bar(s, bar + 1), s->bar[bar] >> 32);
    }
}

void sriov_enable(Sriov *s, unsigned int vfs)
{
    qtest_writew(s->h->qts, s->cap + PCI_SRIOV_NUM_VF, vfs);
    qtest_writew(s->h->qts, s->cap + PCI_SRIOV_CTRL,
                 PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE);
}

void sriov_disable(Sriov *s)
{
    qtest_writew(s->h->qts, s->cap + PCI_SRIOV_CTRL, 0);
    qtest_writew(s->h->qts, s->cap + PCI_SRIOV_NUM_VF, 0);
}

uint32_t sriov_status(Sriov *s, unsigned int n)
{
    struct qhca_vf_state state;

    g_assert_cmpint(hca_cmd(s->h, QHCA_CMD_QUERY_VF, n + 1, 0, NULL, 0, &state,
                            sizeof(state)), ==, QHCA_CMD_OK);
    return le32_to_cpu(state.status);
}

void vf_map(Hca *vf)
{
    qpci_device_enable(vf->dev);
}

/* libqos finds no function without a vendor, and no BARs in this one. */
Hca *vf_new(Sriov *s, unsigned int n)
{
    uint16_t offset = qtest_readw(s->h->qts, s->cap + PCI_SRIOV_VF_OFFSET);
    uint16_t stride = qtest_readw(s->h->qts, s->cap + PCI_SRIOV_VF_STRIDE);
    QPCIBar *bars[6];
    Hca *vf = g_new0(Hca, 1);

    vf->qts = s->h->qts;
    vf->bus = s->h->bus;
    vf->alloc = s->h->alloc;
    vf->dev = g_new0(QPCIDevice, 1);
    vf->dev->bus = s->h->bus;
    vf->dev->devfn = s->h->dev->devfn + offset + n * stride;
    bars[QHCA_BAR_REGS] = &vf->regs;
    bars[QHCA_BAR_DOORBELLS] = &vf->doorbells;
    bars[QHCA_BAR_DEVMEM] = &vf->devmem;
    for (int bar = 0; bar < 6; bar += 2) {
        *bars[bar] = (QPCIBar) { .addr = s->bar[bar] + n * s->size[bar] };
    }
    hca_alloc_pages(vf);
    vf_map(vf);
    return vf;
}

void vf_enable_msix(Hca *vf)
{
    QPCIDevice *dev = vf->dev;
    uint8_t cap = qpci_find_capability(dev, PCI_CAP_ID_MSIX, 0);
    uint16_t flags = qpci_config_readw(dev, cap + PCI_MSIX_FLAGS);

    qpci_config_writew(dev, cap + PCI_MSIX_FLAGS,
                       flags | PCI_MSIX_FLAGS_ENABLE);
    dev->msix_table_bar = vf->regs;
    dev->msix_pba_bar = vf->regs;
    dev->msix_table_off = QHCA_MSIX_TABLE_OFFSET;
    dev->msix_pba_off = QHCA_MSIX_PBA_OFFSET;
    dev->msix_enabled = true;
}

void vf_flr(Hca *vf)
{
    uint8_t cap = qpci_find_capability(vf->dev, PCI_CAP_ID_EXP, 0);
    uint16_t ctl = qpci_config_readw(vf->dev, cap + PCI_EXP_DEVCTL);

    qpci_config_writew(vf->dev, cap + PCI_EXP_DEVCTL,
                       ctl | PCI_EXP_DEVCTL_BCR_FLR);
    g_assert_cmphex(qpci_config_readw(vf->dev, PCI_COMMAND) &
                    PCI_COMMAND_MASTER, ==, 0);
    vf_map(vf);
}

void vf_free(Hca *vf)
{
    g_free(vf->dev);
    g_free(vf);
}
