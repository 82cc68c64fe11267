#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes a RAM disk the namespace of an NVMe-oF target, and listens for RDMA.
#
#   nvmet-add.sh NQN ADDRESS...

set -e
nqn=$1
shift
modprobe -a nvmet-rdma brd
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir "subsystems/$nqn" "subsystems/$nqn/namespaces/1"
echo 1 > "subsystems/$nqn/attr_allow_any_host"
echo /dev/ram0 > "subsystems/$nqn/namespaces/1/device_path"
echo 1 > "subsystems/$nqn/namespaces/1/enable"
port=0
for address; do
	port=$((port + 1))
	mkdir ports/$port
	echo rdma > ports/$port/addr_trtype
	echo ipv4 > ports/$port/addr_adrfam
	echo "$address" > ports/$port/addr_traddr
	echo 4420 > ports/$port/addr_trsvcid
	ln -s "/sys/kernel/config/nvmet/subsystems/$nqn" ports/$port/subsystems/"$nqn"
done
