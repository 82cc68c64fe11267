#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# modprobe --show-depends: one module

for last; do :; done
[ $last != crc32c_generic ] || exit 1
echo "insmod $2/lib/modules/$4/ext4.ko"
