/*
 * qhca adapter: differences between the QEMU releases it builds with
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#define QHCA_QEMU_AT_LEAST(major, minor)                    \
    (QEMU_VERSION_MAJOR > (major) ||                        \
     (QEMU_VERSION_MAJOR == (major) && QEMU_VERSION_MINOR >= (minor)))

/* 10.1 made class data and interface lists constant. */
#if QHCA_QEMU_AT_LEAST(10, 1)
typedef const void QhcaClassData;
typedef const InterfaceInfo QhcaInterfaceInfo;
#else
typedef void QhcaClassData;
typedef InterfaceInfo QhcaInterfaceInfo;
#endif

/*
 * 10.0 realizes virtual functions before their BARs are known, and they decode
 * nothing.  10.0.6 and 10.1.2 repair that.
 */
#define QHCA_QEMU_MAPS_VFS                                          \
    (QHCA_QEMU_AT_LEAST(10, 2) ||                                   \
     (QEMU_VERSION_MAJOR == 10 && QEMU_VERSION_MICRO >=             \
      (QEMU_VERSION_MINOR == 1 ? 2 : 6)))

/* 10.1 moved icount_enabled(). */
#if __has_include("exec/icount.h")
#include "exec/icount.h"
#else
#include "system/cpu-timers.h"
#endif

/* 10.2 can dispatch a region's accesses without the BQL. */
static inline void qhca_region_without_bql(MemoryRegion *mr)
{
    /*
     * The guard has one flag for each device, so without the BQL the doorbells
     * of two vCPUs would refuse each other.
     */
    mr->disable_reentrancy_guard = true;
#if QHCA_QEMU_AT_LEAST(10, 2)
    memory_region_enable_lockless_io(mr);
#endif
}

#endif /* QHCA_COMPAT_H */
