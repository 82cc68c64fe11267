#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes a guest swap to its virtio disk of this serial number.
#
#   swap-disk.sh SERIAL

set -e
swap=
for disk in /sys/block/vd*; do
	[ "$(cat "$disk/serial")" != "$1" ] || swap=/dev/${disk##*/}
done
mkswap "$swap"
swapon "$swap"
