#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds the kernel that looks for faults (KASAN, lockdep, kmemleak and others)
# from the source of the guest's own, with scripts/debug-kernel.config and
# scripts/debug-kernel.patch, and the modules for it. Guests boot it with
# QHCA_KERNEL=debug.
#
# Made in the guest tree with the guest's compiler, where it stays: once for a
# version and a configuration. Nothing else needs it, so that `make check` does
# not wait for it.

SCRIPT_NAME=kernel
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

package=linux-source-$KERNEL_SERIES
config=$TOP/scripts/debug-kernel.config
patch=$TOP/scripts/debug-kernel.patch

unpack()
{
	local deb=$CACHE/download/${package}_${version}_all.deb
	if [ ! -e "$deb" ]; then
		say "fetching the kernel's source"
		fetch_deb "$GUEST_SUITE" "$package=$version" "$CACHE/download/$package.part"
		mv -T "$fetched" "$deb"
		rm -rf "$CACHE/download/$package.part"
	fi
	say "unpacking Linux $version"
	rm -rf "$src.tmp"
	mkdir -p "$src.tmp"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$package.tar.xz" |
		tar -xJ -C "$src.tmp" --strip-components=1
	patch -s -p1 -d "$src.tmp" --no-backup-if-mismatch < "$patch" ||
		die "${patch#"$TOP/"} does not apply to Linux $version"
	mv -T "$src.tmp" "$src"
}

kmake()
{
	in_tree "/build/${src##*/}" make "O=/build/$name/out" "$@"
}

# An option that needs another one vanishes without a word.
heeded()
{
	local line
	while read -r line; do
		case $line in
		CONFIG_*) grep -qxF "$line" "$dir/out/.config" || die "${config#"$TOP/"}: $line came to nothing" ;;
		esac
	done < "$config"
}

make_kernel()
{
	need_space "$GUEST_TREE/build" 5000 "building the kernel"
	[ -d "$src" ] || unpack
	mkdir -p "$dir/out"
	cp "$config" "$dir/config"
	logged "$BUILD/log/kernel-config.log" "the kernel does not configure; see above" \
		kmake KCONFIG_ALLCONFIG="/build/$name/config" allnoconfig
	heeded
	say "compiling the kernel (once on this machine, many minutes)"
	logged "$BUILD/log/kernel.log" "the kernel does not build; see above" \
		kmake -j "$JOBS" bzImage modules
	# All is built in; this is the list that tells modprobe so.
	logged "$BUILD/log/kernel-install.log" "the list of what is built in cannot be made; see above" \
		kmake INSTALL_MOD_PATH="/build/$name/modules" modules_install
	release=$(cat "$dir/out/include/config/kernel.release")
	as_root mkdir -p "$GUEST_TREE/lib/modules/$release"
	as_root cp "$dir/modules/lib/modules/$release"/modules.* "$GUEST_TREE/lib/modules/$release/"
	touch "$dir/built"
}

need_root "build in the guest tree"
run_script guest.sh
version=$({ apt_in "$GUEST_SUITE" apt-cache show --no-all-versions "$package" || true; } | awk '/^Version:/ { print $2 }')
[ -n "$version" ] || die "$GUEST_SUITE has no $package"
changes=$(cat "$patch")
src=$GUEST_TREE/build/linux-${version//[^0-9A-Za-z.]/_}-$(hash_of "$changes")
options=$(cat "$config")
name=$(hash_of "$options" "$changes")
name=linux-debug-${version//[^0-9A-Za-z.]/_}-$name
dir=$GUEST_TREE/build/$name
[ -e "$dir/built" ] || locked "$name" make_kernel
release=$(cat "$dir/out/include/config/kernel.release")

# For the lab, with which guest.sh puts it, and for modules.sh.
{
	echo "debug=$release"
	echo "kernel-$release=$dir/out/arch/x86/boot/bzImage"
	echo "modules-$release=$GUEST_TREE/lib/modules/$release"
	echo "build-$release=/build/$name/out"
} | write_if_changed "$BUILD/guest/debug"
run_script initramfs.sh "$BUILD/guest/initramfs-$release" "$release"
run_script guest.sh
run_script modules.sh debug
say "done: $release"
