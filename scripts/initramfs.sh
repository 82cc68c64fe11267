#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Writes build/guest/initramfs-KERNEL for each of the guest's kernels: busybox,
# scripts/guest-init, and the few modules that reach the root disk, already
# unpacked. A tenth of Debian's own, so it loads and starts at once.
#
#   scripts/initramfs.sh OUTPUT VMLINUZ-RELEASE [MODULES-ROOT]

SCRIPT_NAME=initramfs
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

out=$1
release=$2
root=${3:-$GUEST_TREE}
scratch=$(mktemp -d)
work=$scratch
mkdir -p "$work"/{bin,dev,lib,proc,root,sys}
cp "$GUEST_TREE/bin/busybox" "$work/bin/busybox"
cp "$TOP/scripts/guest-init" "$work/init"
chmod 755 "$work/init" "$work/bin/busybox"
depends()
{
	modprobe -d "$root" -S "$release" --show-depends -a "$@"
}

needed=$(depends virtio_pci)
# Behind a virtio-iommu no other device is there before its driver.
needed+=$'\n'$(depends virtio_iommu 2> /dev/null || true)
needed+=$'\n'$(depends virtio_blk ext4)
# Newer kernels have this one no more.
needed+=$'\n'$(depends crc32c_generic 2> /dev/null || true)
: > "$work/lib/order"
while read -r kind path _; do
	[ "$kind" = insmod ] || continue
	name=${path##*/}
	name=${name%%.ko*}.ko
	[ ! -e "$work/lib/$name" ] || continue
	case $path in
	*.xz) xz -dc "$path" > "$work/lib/$name" ;;
	*.zst) zstd -qdc "$path" > "$work/lib/$name" ;;
	*.gz) gzip -dc "$path" > "$work/lib/$name" ;;
	*) cp "$path" "$work/lib/$name" ;;
	esac
	echo "$name" >> "$work/lib/order"
done <<< "$needed"

mkdir -p "$(dirname "$out")"
(cd "$work" && find . -print0 | sort -z | cpio --null --quiet -o -H newc -R 0:0) > "$out.new"
mv -T "$out.new" "$out"
