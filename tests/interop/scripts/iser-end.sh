#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ends what iser-target.sh began.
#
#   iser-end.sh NAME

target=/sys/kernel/config/target
echo 0 > "$target/iscsi/$1/tpgt_1/enable"
rm -f "$target/iscsi/$1/tpgt_1/lun/lun_0/disk"
rmdir "$target/iscsi/$1/tpgt_1/lun/lun_0" "$target/iscsi/$1"/tpgt_1/np/* \
	"$target/iscsi/$1/tpgt_1" "$target/iscsi/$1" "$target/core/fileio_0/disk"
umount /srv/iser
