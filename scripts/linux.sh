#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Has guests boot a Linux tree of the user's: copies its bzImage, installs its modules
# into a disk image for guests, and builds our modules for it. The tree must be built,
# and is not changed.
#
# LINUX=DIR  the tree, or an output folder of one (make O=), now and in later runs;
#            LINUX= goes back to Debian's kernels
# CC=        the compiler of our modules, as for KDIR: see scripts/modules.sh

SCRIPT_NAME=linux
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"
# shellcheck source=scripts/own-kernel.sh
. "$TOP/scripts/own-kernel.sh"

config=$TOP/scripts/linux.config
dir=$BUILD/linux

# lacking PART: the options of a part of linux.config that the tree was built without.
# include/config/auto.conf is what it was built with; .config may be newer.
lacking()
{
	awk -F = -v part="$1" '
	FNR == NR { has[$1] = $2; next }
	/^#= / { here = substr($0, 4) == part }
	/^CONFIG_/ && here && has[$1] != "y" && (has[$1] != "m" || $2 != "m") {
		printf "%s%s", sep, $1
		sep = " "
	}' "$LINUX/include/config/auto.conf" "$config"
}

# The command that adds what is lacking. An output folder has its scripts elsewhere.
merge_line()
{
	local scripts=scripts
	[ ! -L "$LINUX/source" ] || scripts=source/scripts
	echo "cd $LINUX && $scripts/kconfig/merge_config.sh -m .config $config && make olddefconfig && make -j$(nproc)"
}

check_tree()
{
	local needed tests f
	[ -e "$LINUX/.config" ] ||
		die "LINUX=$LINUX is not configured: run make -C $LINUX defconfig, and then: $(merge_line)"
	for f in arch/x86/boot/bzImage include/config/kernel.release include/config/auto.conf Module.symvers; do
		[ -e "$LINUX/$f" ] || die "LINUX=$LINUX is not built (it has no $f): run make -C $LINUX -j$(nproc)"
	done
	needed=$(lacking "qhca needs")
	needed+=${needed:+ }$(lacking "the lab's guests need")
	[ -z "${needed% }" ] ||
		die "LINUX=$LINUX was built without options that qhca or its guests need: ${needed% }. This adds them: $(merge_line)"
	tests=$(lacking "tests need")
	[ -z "$tests" ] || say "tests fail or are skipped, since $LINUX was built without: $tests"
	release=$(cat "$LINUX/include/config/kernel.release")
}

# changed: a line for each of the tree's files that has changed since it was installed
changed()
{
	[ -e "$dir/modules.img" ] && [ "$(cat "$dir/installed")" = "$LINUX $release" ] || { echo all; return; }
	{
		printf '%s\n' arch/x86/boot/bzImage modules.order modules.builtin
		sed 's,\.o$,.ko,' "$LINUX/modules.order"
	} | (cd "$LINUX" && xargs -d '\n' sh -c 'find "$@" -newer "$0"' "$dir/installed") || echo unknown
}

kernel_make()
{
	if [ -n "${CC:-}" ] || has_compiler "$LINUX"; then
		make -C "$LINUX" "$@"
	else
		guest_make "$LINUX" "$dir" / "$@"
	fi
}

install_kernel()
{
	local root=$dir/root size modules
	# What changes in the tree from now on is newer than this file.
	echo "$LINUX $release" > "$dir/installed.new"
	rm -rf "$root"
	echo none > "$dir/installed"
	mkdir -p "$root/boot"
	put "$LINUX/arch/x86/boot/bzImage" "$root/boot/vmlinuz-$release"
	modules=$root/lib/modules/$release
	say "installing the modules of $release"
	logged "$BUILD/log/linux-modules.log" "the modules of $LINUX cannot be installed; see above" \
		kernel_make "INSTALL_MOD_PATH=$root" INSTALL_MOD_STRIP=1 modules_install
	[ -e "$modules/modules.dep" ] || die "make modules_install made no $modules/modules.dep"
	# They lead out of the guest.
	rm -f "$modules"/{build,source}
	size=$(du -sm "$modules" | cut -f 1)
	rm -f "$dir/modules.img.new"
	truncate -s $((size + size / 4 + 8))M "$dir/modules.img.new"
	mke2fs -q -t ext4 -O ^has_journal -m 0 -E root_owner=0:0 -d "$modules" "$dir/modules.img.new"
	mv -T "$dir/modules.img.new" "$dir/modules.img"
	mv -T "$dir/installed.new" "$dir/installed"
}

own_tree LINUX Makefile "Linux tree"
export LINUX
if [ -z "$LINUX" ]; then
	if [ -e "$BUILD/guest/linux" ]; then
		rm -rf "$dir" "$BUILD/guest/linux"
		run_script guest.sh
	fi
	exit 0
fi
# Should this script fail, no guest boots another kernel in place of the tree's.
echo "linux=$LINUX" | write_if_changed "$BUILD/guest/linux"
check_tree
need_root "make the guest and build in it"
run_script guest.sh
known=$(sed -n 's,^\(default\|backports\|debug\)=,,p' "$BUILD/guest/env")
case $'\n'$known$'\n' in
*$'\n'"$release"$'\n'*) die "LINUX=$LINUX has the release of another kernel of the guest, $release: give it a CONFIG_LOCALVERSION of its own" ;;
esac
mkdir -p "$dir"
[ -e "$dir/installed" ] || echo none > "$dir/installed"
news=$(changed)
[ -z "$news" ] || install_kernel
slow=$(grep -E '^CONFIG_(KASAN|KCSAN|PROVE_LOCKING|DEBUG_KMEMLEAK)=y' "$LINUX/include/config/auto.conf" || true)
{
	echo "linux=$release"
	echo "kernel-$release=$dir/root/boot/vmlinuz-$release"
	echo "disk-$release=$dir/modules.img"
	[ -z "$slow" ] || echo "slow-$release=yes"
} | write_if_changed "$BUILD/guest/linux"
run_script initramfs.sh "$BUILD/guest/initramfs-$release" "$release" "$dir/root"
run_script guest.sh
run_script modules.sh linux
say "done: guests boot $release of $LINUX"
