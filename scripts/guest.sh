#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes the guest: a Debian tree with kernels, headers, a compiler, rdma-core's
# source and the programs that tests use; and a boot image of that tree.
# Both live in the cache and do not depend on the checkout.

SCRIPT_NAME=guest
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

packages=(
	# the kernel under test
	linux-image-amd64 linux-headers-amd64
	# RDMA
	rdma-core ibverbs-utils ibverbs-providers perftest rdmacm-utils
	infiniband-diags python3-pyverbs
	# tools
	busybox-static iproute2 ethtool kmod tcpdump qemu-guest-agent fio nvme-cli
	iperf3 iputils-ping strace procps psmisc nfs-common nfs-kernel-server
	# what people run over RDMA; openssh-server is how mpirun reaches the other guest
	ucx-utils openmpi-bin netpipe-openmpi libfabric-bin qperf open-iscsi
	openssh-server
	# building those that Debian does not build, or not for RDMA
	autoconf automake libtool libfabric-dev libopenmpi-dev libcap-dev
	liblua5.1-0-dev libncurses-dev
	# building modules, the provider and test programs
	build-essential bc flex bison cmake ninja-build pkg-config python3
	libelf-dev libnl-3-dev libnl-route-3-dev libudev-dev libibverbs-dev
	librdmacm-dev libcmocka-dev sparse
)

newer_kernel()
{
	# linux-image-amd64 depends on the package of the newest version.
	{ apt_in "$BACKPORTS_SUITE" apt-cache show --no-all-versions linux-image-amd64 || true; } |
		sed -n -E 's/^Depends:.*linux-image-([0-9][^ ,]*-amd64).*/\1/p' | first_line
}

make_tree()
{
	local uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg newer
	need_space "$CACHE" "$GUEST_SPACE" "making the guest"
	newer=$(newer_kernel)
	case $newer in
	"$BACKPORTS_KERNEL_SERIES"*) packages+=("linux-image-$newer" "linux-headers-$newer" "linux-base/$BACKPORTS_SUITE") ;;
	*) die "$BACKPORTS_SUITE carries kernel ${newer:-nothing}, versions.mk expects $BACKPORTS_KERNEL_SERIES" ;;
	esac
	uri=$(debian_uri)
	as_root rm -rf "$GUEST_TREE.tmp" "$GUEST_DIR/aptopt"
	mkdir -p "$GUEST_DIR"
	# The tree is made with the machine's own ways to reach the archive.
	apt-config dump --no-empty Acquire | grep -E '^Acquire::(http|https|Check-)' > "$GUEST_DIR/aptopt" || true
	say "making the guest tree: Debian $GUEST_SUITE, its kernel and $newer (once on this machine, some minutes)"
	printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$uri" "$GUEST_SUITE" \
		"$keyring" "$uri" "$BACKPORTS_SUITE" > "$GUEST_DIR/sources.list"
	logged "$GUEST_DIR/tree.log" "could not make the guest tree; see above" as_root env INITRD=No mmdebstrap --variant=apt --mode=root \
		--aptopt="$GUEST_DIR/aptopt" \
		--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$(IFS=,; echo "${packages[*]}")" \
		"$GUEST_SUITE" "$GUEST_TREE.tmp" "$GUEST_DIR/sources.list"
	as_root sh -ec '
		tree=$1
		for d in "$tree"/lib/modules/*; do depmod -b "$tree" "${d##*/}"; done
		rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/*
		chroot "$tree" passwd -q -d root
		for c in halt poweroff reboot; do
			[ -e "$tree/usr/sbin/$c" ] || ln -s ../bin/busybox "$tree/usr/sbin/$c"
		done
		mkdir -m 1777 "$tree/build"' sh "$GUEST_TREE.tmp"
	make_image "$GUEST_TREE.tmp"
	as_root mv -T "$GUEST_TREE.tmp" "$GUEST_TREE"
}

# Written before the tree gets its name, so that no tree is without its image
# and nothing built in the tree later is in it.
make_image()
{
	local size
	say "writing the boot image"
	size=$(as_root du -sm "$1" | cut -f 1)
	rm -f "$GUEST_IMAGE.tmp"
	truncate -s $((size + size / 4 + 1024))M "$GUEST_IMAGE.tmp"
	as_root mke2fs -q -t ext4 -L qhca-root -O ^has_journal -m 0 -d "$1" "$GUEST_IMAGE.tmp" ||
		die "could not write the boot image"
	mv "$GUEST_IMAGE.tmp" "$GUEST_IMAGE"
}

# rdma-core's source, of the version whose packages the guest has: a provider
# is bound to the private ABI of the libibverbs it was built with.
make_rdma_core()
{
	local version dir=$GUEST_TREE/build/rdma-core
	version=$(as_root chroot "$GUEST_TREE" dpkg-query -W -f '${source:Upstream-Version}' libibverbs1)
	case $version in
	"$RDMA_CORE_SERIES".*) ;;
	*) die "the guest has rdma-core $version, versions.mk expects $RDMA_CORE_SERIES" ;;
	esac
	fetch_orig "$GUEST_SUITE" "rdma-core" "$CACHE/download"
	case $fetched in
	*"_$version.orig."*) ;;
	*) die "the archive's rdma-core source is ${fetched##*/}, the guest's packages are $version: remove $GUEST_DIR and try again" ;;
	esac
	say "unpacking rdma-core $version"
	as_root rm -rf "$dir" "$dir.tmp"
	as_root mkdir -p "$dir.tmp/src"
	as_root tar -xf "$fetched" -C "$dir.tmp/src" --strip-components=1
	as_root chown -R "$(id -u):$(id -g)" "$dir.tmp"
	as_root mv -T "$dir.tmp" "$dir"
}

# virtme-ng runs from the cache: Debian 12's is too old, and the machine needs
# none of its own.
make_vng()
{
	say "fetching virtme-ng"
	rm -rf "$VNG_DIR.tmp"
	fetch_deb "$GUEST_SUITE" virtme-ng "$VNG_DIR.tmp/deb"
	dpkg -x "$fetched" "$VNG_DIR.tmp"
	rm -rf "$VNG_DIR.tmp/deb"
	mv -T "$VNG_DIR.tmp" "$VNG_DIR"
}

kernel_files()
{
	local k out
	for k in "$GUEST_TREE"/boot/vmlinuz-*; do
		out=$GUEST_DIR/${k##*/}
		if [ ! -e "$out" ]; then
			as_root install -m 644 "$k" "$out.new"
			mv -T "$out.new" "$out"
		fi
	done
}

make_guest()
{
	[ -d "$GUEST_TREE" ] || make_tree
	kernel_files
	[ -d "$VNG_DIR" ] || make_vng
	[ -d "$GUEST_TREE/build/rdma-core" ] || make_rdma_core
}

run_script setup.sh
if [ ! -d "$GUEST_TREE" ]; then
	need_root "make the guest"
	# Disk space is asked for before anything is read or made.
	need_space "$CACHE" "$GUEST_SPACE" "making the guest"
fi
apt_setup "$GUEST_SUITE"
apt_setup "$BACKPORTS_SUITE"
locked guest make_guest

# What the checkout adds: a way in, and where tests find the rest.
out=$BUILD/guest
mkdir -p "$out"
releases=$(guest_kernels)
for release in $releases; do
	newer=missing
	[ ! -e "$out/initramfs-$release" ] || newer=$(find "$TOP/scripts/guest-init" \
		"$TOP/scripts/initramfs.sh" "$GUEST_DIR/vmlinuz-$release" -newer "$out/initramfs-$release")
	[ -z "$newer" ] || run_script initramfs.sh "$out/initramfs-$release" "$release"
done
default=$(the_kernel "$KERNEL_SERIES.")
backports=$(the_kernel "$BACKPORTS_KERNEL_SERIES")
{
	echo "image=$GUEST_IMAGE"
	echo "tree=$GUEST_TREE"
	echo "cache=$CACHE"
	echo "vng=$VNG_DIR"
	for release in $releases; do
		echo "kernel-$release=$GUEST_DIR/vmlinuz-$release"
	done
	echo "default=$default"
	echo "backports=$backports"
	# scripts/kernel.sh's, if it was made
	[ ! -e "$out/debug" ] || cat "$out/debug"
	# scripts/linux.sh's, if there is a tree of the user's
	[ ! -e "$out/linux" ] || cat "$out/linux"
} | write_if_changed "$out/env"
say "done: ${GUEST_DIR##*/}"
