#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Starts a domain of libvirt in a Debian tree that has libvirt, with a bridge br0, in
# namespaces that end with this script. Prints what libvirt, QEMU's monitor and the bridge
# say about it. For root.
#
#   libvirt.sh TREE QEMU-FOLDER DOMAIN

set -e
if [ "${4:-}" != inside ]; then
	exec unshare --mount --net --pid --fork --kill-child --propagation private \
		"$0" "$@" inside
fi
tree=$1
mount -t proc proc "$tree/proc"
mount -t sysfs sys "$tree/sys"
mount --rbind /dev "$tree/dev"
for folder in run tmp var/lib/libvirt/images; do
	mkdir -p "$tree/$folder"
	mount -t tmpfs tmpfs "$tree/$folder"
done
# Where the page has it copied.
mkdir -p "$tree/opt/qhca"
mount --bind "$2" "$tree/opt/qhca"
cp "$3" "$tree/tmp/domain.xml"
cp "$(dirname "$0")/libvirt-domain.sh" "$tree/tmp/"
exec chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	bash /tmp/libvirt-domain.sh /tmp/domain.xml
