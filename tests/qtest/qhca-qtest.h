/*
 * What the qtests of the qhca RDMA adapter share: a guest with one device and
 * no driver
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_QHCA_QTEST_H
#define TESTS_QTEST_QHCA_QTEST_H

#include "qemu/bswap.h"
#include "qemu/units.h"
#include "libqtest.h"
#include "libqos/malloc-pc.h"
#include "libqos/pci-pc.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "hw/pci/pci_regs.h"
#include "hw/rdma/qhca/include/qhca/qhca_hw.h"

/* The specification advises software to wait for 10; a host may be busy. */
#define ANSWER_S        60
#define SLOT_SIZE       sizeof(struct qhca_cmd_slot)
#define EQ_LOG_DEPTH    4
#define EQ_RECORD       ((1 << EQ_LOG_DEPTH) * sizeof(struct qhca_eqe))
#define ECAM            0xb0000000u
#define NOWHERE         0x00007ffffffff000ull   /* no memory there */

typedef struct Hca {
    QTestState *qts;
    QPCIBus *bus;
    QPCIDevice *dev;
    QGuestAllocator *alloc;
    QPCIBar regs, doorbells, devmem;
    uint64_t cmdq, in, out;     /* a page each */
    uint64_t eq, eq_table;
} Hca;

/*
 * A guest with one device, at slot 4, and no driver.  hca_map() finds the device,
 * also after a reset of the function or a new plug.
 */
Hca *hca_new(const char *machine, const char *options);
Hca *hca_start(void);
void hca_stop(Hca *h);
void hca_map(Hca *h);
/* The same for a device at another place than slot 4 of the first bus. */
void hca_map_at(Hca *h, int devfn);
void hca_enable_msix(Hca *h);
/* A zeroed page of guest memory. */
uint64_t hca_page(Hca *h);
/* Those of the struct. */
void hca_alloc_pages(Hca *h);

/* Extended configuration space, which libqos has no access to. */
void enable_ecam(Hca *h);
uint64_t ecam_of(const QPCIDevice *dev);

/* Registers and doorbells */
uint32_t hca_read(Hca *h, uint32_t reg);
void hca_write(Hca *h, uint32_t reg, uint32_t value);
void hca_ring(Hca *h, uint32_t page, uint32_t offset, uint64_t value);
uint32_t hca_status(Hca *h);
/* Wait until the device has failed for this cause. */
void hca_assert_fatal(Hca *h, enum qhca_fatal cause);
void hca_assert_alive(Hca *h);
void hca_reset(Hca *h);
void hca_flr(Hca *h);
void hca_set_cmdq(Hca *h, uint32_t log_slots, uint64_t base);
void hca_enable(Hca *h);

/* Commands */
void hca_fill_slot(Hca *h, uint32_t slot, const struct qhca_cmd_slot *cmd);
uint32_t hca_slot_status(Hca *h, uint32_t slot);
enum qhca_cmd_status hca_wait_slot(Hca *h, uint32_t slot);
enum qhca_cmd_status hca_run(Hca *h, const struct qhca_cmd_slot *cmd);
/* A command with the mailboxes that it needs. */
enum qhca_cmd_status hca_cmd(Hca *h, uint16_t opcode, uint32_t index,
                             uint32_t param, const void *in, uint32_t in_len,
                             void *out, uint32_t out_len);
enum qhca_cmd_status hca_nop(Hca *h);
uint64_t hca_counter(Hca *h, enum qhca_counter id);
struct qhca_init_hca hca_small_tables(void);
enum qhca_cmd_status hca_init(Hca *h, const struct qhca_init_hca *init);
enum qhca_cmd_status hca_map_chunk(Hca *h, enum qhca_table table,
                                   uint32_t chunk, uint64_t addr);
struct qhca_eqc_sw hca_eq_config(Hca *h, uint16_t vector);
enum qhca_cmd_status hca_create_eq(Hca *h, uint32_t eqn,
                                   const struct qhca_eqc_sw *eq);
/* As far as a driver goes before it creates its first CQ. */
void hca_bring_up(Hca *h);

/* Interrupts */
void msix_target(Hca *h, uint16_t vector, uint64_t addr, uint32_t data);
void wait_for_word(Hca *h, uint64_t addr, uint32_t value);
void nop_with_event(Hca *h, uint16_t token);

/* The host's side */
void wait_deleted(Hca *h);
void set_property(Hca *h, const char *name, const char *value);
uint64_t get_property(Hca *h, const char *name);

#endif /* TESTS_QTEST_QHCA_QTEST_H */
