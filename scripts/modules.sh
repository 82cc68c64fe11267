#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds qhca.ko, qhca_ib.ko and, for a kernel with VFIO, qhca_vfio.ko, and the
# tests that are modules, against each kernel the guest has, in the guest tree
# with the guest's compiler, and leaves them in build/modules/RELEASE/.
#
#   scripts/modules.sh [RELEASE...]   default: the suite's own kernel;
#                                     "all": every kernel of the guest;
#                                     "debug": the one of scripts/kernel.sh;
#                                     "linux": the tree LINUX of scripts/linux.sh
#
# KDIR=DIR   a kernel build tree of one's own, now and in later runs; KDIR= goes back
# CC=        the compiler for KDIR and LINUX. Otherwise it is this machine's gcc if the
#            tree was configured with that version, and else the guest's: Debian's trees
#            of headers want the compiler and the tools of their own suite.
# W=1 C=1    passed on to kbuild

SCRIPT_NAME=modules
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"
# shellcheck source=scripts/own-kernel.sh
. "$TOP/scripts/own-kernel.sh"

extra=()
for v in W C CF KCFLAGS; do
	[ -z "${!v:-}" ] || extra+=("$v=${!v}")
done

# What kbuild reads: the top Kbuild file, drivers/ and tests/guest/kernel/.
stage()
{
	local part
	mkdir -p "$1"
	rsync -lp --checksum "$TOP/Kbuild" "$1/"
	for part in drivers tests/guest/kernel; do
		mkdir -p "$1/$part"
		rsync -rlp --checksum --delete --filter='P *.o' --filter='P *.ko' --filter='P *.mod' \
			--filter='P *.mod.c' --filter='P *.cmd' --filter='P *.order' --filter='P *.symvers' \
			"$TOP/$part/" "$1/$part/"
	done
}

collect()
{
	local out=$BUILD/modules/$2 ko made
	made=$(find "$1" -name '*.ko')
	[ -n "$made" ] || die "the build made no module"
	mkdir -p "$out"
	rm -f "$out"/*.ko
	while read -r ko; do
		put "$ko" "$out/${ko##*/}"
		say "built ${out#"$TOP/"}/${ko##*/}"
	done <<< "$made"
}

warnings()
{
	if grep -qE 'warning:|WARNING:' "$1"; then
		grep -E -A 4 'warning:|WARNING:' "$1" >&2
		[ -z "${WERROR:-}" ] || die "the modules build with warnings"
	fi
}

in_guest_tree()
{
	local release=$1 work name kdir
	kdir=$(sed -n "s,^build-$release=,,p" "$BUILD/guest/env")
	kdir=${kdir:-/usr/src/linux-headers-$release}
	[ -d "$GUEST_TREE$kdir" ] || die "the guest has no headers of $release (it has: $(guest_kernels | tr '\n' ' '))"
	# One folder for each checkout: objects of two must not mix.
	name=modules-$(hash_of "$TOP")/$release
	work=$GUEST_TREE/build/$name
	stage "$work"
	say "building for $release"
	logged "$BUILD/log/modules-$release.log" "the modules do not build for $release; see above" \
		in_tree "/build/$name" \
		make -C "$kdir" "M=/build/$name" -j "$JOBS" "${extra[@]}" modules
	warnings "$BUILD/log/modules-$release.log"
	collect "$work" "$release"
}

# own_kernel VARIABLE: for the kernel tree that it names
own_kernel()
{
	local tree=${!1} release work name compiler=host
	if [ -e "$tree/include/config/kernel.release" ]; then
		release=$(cat "$tree/include/config/kernel.release")
	else
		release=$(make -s -C "$tree" kernelrelease)
	fi
	[ -n "$release" ] || die "$1=$tree does not tell its release: build it, or run make modules_prepare there"
	[ -e "$tree/scripts/basic/fixdep" ] ||
		die "$1=$tree has no scripts/basic/fixdep: run make modules_prepare there; a copy of Debian's headers needs linux-kbuild, to which they link, beside it"
	[ -n "${CC:-}" ] || has_compiler "$tree" || compiler=guest
	if [ "$compiler" = host ]; then
		work=$BUILD/modules/$release/src
		stage "$work"
		say "building for $release in $tree${CC:+ with $CC}"
		logged "$BUILD/log/modules-$release.log" "the modules do not build for $release; see above" \
			make -C "$tree" "M=$work" -j "$JOBS" "${extra[@]}" ${CC:+"CC=$CC"} modules
	else
		need_root "build with the guest's compiler"
		run_script guest.sh
		name=modules-$(hash_of "$TOP")/own-$release
		work=$GUEST_TREE/build/$name
		stage "$work"
		say "building for $release in $tree with the guest's compiler, since this machine has another one"
		logged "$BUILD/log/modules-$release.log" "the modules do not build for $release; see above" \
			guest_make "$tree" "" "/build/$name" "M=/build/$name" -j "$JOBS" "${extra[@]}" modules
	fi
	warnings "$BUILD/log/modules-$release.log"
	collect "$work" "$release"
}

[ -f "$TOP/Kbuild" ] || { say "no drivers yet: nothing to build"; exit 0; }
if [ "$*" = linux ]; then
	own_tree LINUX Makefile "Linux tree"
	[ -n "$LINUX" ] || die "there is no Linux tree of yours: give one by LINUX=DIR"
	own_kernel LINUX
	exit 0
fi
own_tree KDIR Makefile "kernel build tree"
if [ -n "$KDIR" ]; then
	own_kernel KDIR
	# The guests boot Debian's kernels all the same.
	[ "$*" = all ] || exit 0
fi
need_root "build in the guest tree"
run_script guest.sh
releases=("$@")
[ ${#releases[@]} -gt 0 ] || releases=("$(the_kernel "$KERNEL_SERIES.")")
if [ "${releases[*]}" = all ]; then
	all=$(guest_kernels)
	mapfile -t releases <<< "$all"
fi
for r in "${releases[@]}"; do
	if [ "$r" = debug ]; then
		r=$(sed -n 's,^debug=,,p' "$BUILD/guest/env")
		[ -n "$r" ] || die "there is no debug kernel yet: run make debug-kernel"
	fi
	[ "$r" != backports ] || r=$(the_kernel "$BACKPORTS_KERNEL_SERIES")
	locked "modules-$(hash_of "$TOP")-$r" in_guest_tree "$r"
done
