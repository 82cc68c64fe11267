#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# configure of QEMU: its build is a copy, after what $BUILD_DOES does

cat > build.ninja << EOF
rule copy
  command = ${BUILD_DOES:-:} && cat ../src/hw/Kconfig ../src/hw/rdma/qhca/qhca.c ../src/blob > \$out.tmp && mv \$out.tmp \$out
build qemu-system-x86_64: copy ../src/blob ../src/hw/Kconfig ../src/hw/rdma/qhca/qhca.c
EOF
