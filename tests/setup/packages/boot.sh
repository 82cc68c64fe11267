#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Boots a system that has the packages in the QEMU of the packages.
#
#   boot.sh ROOT     the system's folder; its console goes to stdout

set -e
root=$1
image=$root/srv/image
cp "$(dirname "$0")/pingpong.sh" "$root/srv/"
rm -f "$image"
size=$(du -sm "$root" | cut -f 1)
# Beside the folder, or it would contain itself.
truncate -s $((size + size / 4 + 500))M "$root.image"
mke2fs -q -t ext4 -d "$root" "$root.image"
mv "$root.image" "$image"
kernel=$(find "$root/boot" -name 'vmlinuz-*' -printf '%f\n')
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin qemu-system-x86_64-qhca \
	-machine q35 -cpu max -m 1024 -nodefaults -display none -serial stdio -no-reboot \
	-kernel "/boot/$kernel" -initrd "/boot/initrd.img-${kernel#vmlinuz-}" \
	-append "console=ttyS0 root=/dev/vda rw init=/srv/pingpong.sh no_timer_check panic=-1" \
	-drive if=virtio,file=/srv/image,format=raw \
	-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 -device qhca,netdev=n0,mac=52:54:00:aa:00:01
