#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints the report of the kernel's leak detector, which ignores objects that are
# younger than five seconds, and whose first scan may miss a leak.

cd /sys/kernel/debug || exit
sleep 6
echo scan > kmemleak
echo scan > kmemleak
cat kmemleak
