#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What blktests needs of a system, done once in a guest: its programs, udev, configfs.
#
#   prepare.sh FOLDER   what scripts/suites.sh has built
set -e
[ ! -e /run/blktests-is-ready ] || exit 0
cp -a "$1"/packages/. /
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
# A node that every system has at boot: whoever opens it loads the module.
[ -e /dev/loop-control ] || mknod -m 660 /dev/loop-control c 10 237
modprobe configfs
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
# Devices and interfaces keep the names that they have.
mkdir -p /etc/udev/rules.d
for rules in 60-rdma-persistent-naming 75-net-description 80-net-setup-link; do
	ln -sf /dev/null "/etc/udev/rules.d/$rules.rules"
done
/usr/lib/systemd/systemd-udevd --daemon > /dev/null 2>&1
udevadm trigger
udevadm settle --timeout=60
touch /run/blktests-is-ready
