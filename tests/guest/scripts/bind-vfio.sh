#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Binds a virtual function to qhca-vfio, whoever has it, and prints its address.
#
#   bind-vfio.sh FOLDER    /sys/bus/pci/devices/.../virtfnN

set -e
modprobe -a vfio_iommu_type1 vfio-pci-core
[ -d /sys/bus/pci/drivers/qhca-vfio ] || insmod /run/qhca/modules/qhca_vfio.ko
device=$(readlink -f "$1")
address=${device##*/}
[ ! -e "$device/driver" ] || echo "$address" > "$device/driver/unbind"
echo qhca-vfio > "$device/driver_override"
echo "$address" > /sys/bus/pci/drivers/qhca-vfio/bind
echo "$address"
