#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Unloads the drivers, and prints the number of vmalloc areas that they left, then
# the KiB of memory that the kernel cannot reclaim.

rmmod qhca_ib qhca
sync
echo 3 > /proc/sys/vm/drop_caches
grep -c qhca /proc/vmallocinfo
awk '/^(SUnreclaim|VmallocUsed|Percpu):/ { print $2 }' /proc/meminfo
