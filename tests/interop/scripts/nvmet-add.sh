#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes a RAM disk the namespace of an NVMe-oF target, and listens for RDMA.
#
#   nvmet-add.sh NQN ADDRESS

set -e
modprobe -a nvmet-rdma brd
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir subsystems/$1 subsystems/$1/namespaces/1 ports/1
echo 1 > subsystems/$1/attr_allow_any_host
echo /dev/ram0 > subsystems/$1/namespaces/1/device_path
echo 1 > subsystems/$1/namespaces/1/enable
echo rdma > ports/1/addr_trtype
echo ipv4 > ports/1/addr_adrfam
echo $2 > ports/1/addr_traddr
echo 4420 > ports/1/addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/$1 ports/1/subsystems/$1
