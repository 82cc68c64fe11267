#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds the programs that tests run inside guests, with the guest's compiler
# and libraries: tests/guest/programs/Makefile, target all, which puts them in
# $(BUILD). They appear as /run/qhca/bin/ in a guest, which is in its PATH.

SCRIPT_NAME=programs
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

source=$TOP/tests/guest/programs
out=$BUILD/programs

build()
{
	local name work
	name=programs-$(hash_of "$TOP")
	work=$GUEST_TREE/build/$name
	sync_tree "$source/" "$work/src"
	sync_tree "$TOP/drivers/include/" "$work/include"
	sync_tree "$BUILD/provider/" "$work/provider"
	sync_tree "$TOP/tests/host/" "$work/host"
	sync_tree "$TOP/qemu-hca/core/" "$work/core" --include=qhca.h --include=bytes.h --exclude='*'
	mkdir -p "$work/bin"
	say "building the guest's test programs"
	logged "$BUILD/log/programs.log" "the guest's test programs do not build; see above" \
		in_tree "/build/$name/src" make -j "$JOBS" all \
		"BUILD=/build/$name/bin" "ABI=/build/$name/include" \
		"PROVIDER=/build/$name/provider" "HOST=/build/$name/host" "CORE=/build/$name/core"
	sync_tree "$work/bin/" "$out" --exclude=/obj
}

[ -f "$source/Makefile" ] || exit 0
need_root "build in the guest tree"
run_script guest.sh
[ -e "$BUILD/provider/lib/libqhca.so" ] || run_script provider.sh
locked "programs-$(hash_of "$TOP")" build
