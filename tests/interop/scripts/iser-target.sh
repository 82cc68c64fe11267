#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# An iSCSI target with a disk in memory, whose portal takes iSER only.
#
#   iser-target.sh NAME ADDRESS

set -e
modprobe -a target_core_mod iscsi_target_mod ib_isert
modprobe target_core_file
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
core=/sys/kernel/config/target/core/fileio_0/disk
tpg=/sys/kernel/config/target/iscsi/$1/tpgt_1
mkdir -p /srv/iser $core
mountpoint -q /srv/iser || mount -t tmpfs -o size=64m tmpfs /srv/iser
truncate -s 32M /srv/iser/disk
echo "fd_dev_name=/srv/iser/disk,fd_dev_size=33554432" > $core/control
echo 1 > $core/enable
mkdir -p "$tpg/lun/lun_0" "$tpg/np/$2:3260"
ln -s $core "$tpg/lun/lun_0/disk"
echo 1 > "$tpg/np/$2:3260/iser"
echo 0 > "$tpg/attrib/authentication"
echo 1 > "$tpg/attrib/generate_node_acls"
echo 0 > "$tpg/attrib/demo_mode_write_protect"
echo 1 > "$tpg/enable"
