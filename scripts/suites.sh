#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds what tests of other people's programs need and Debian does not build: fabtests,
# which is in libfabric's source. It is built in the guest tree, and lies in the cache
# beside it; it does not depend on the checkout.

SCRIPT_NAME=suites
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

# unpack SOURCE: the upstream source of a package, in the guest tree's build/suites
unpack()
{
	fetch_orig "$GUEST_SUITE" "$1" "$CACHE/download"
	mkdir -p "$work/$1"
	tar -xf "$fetched" -C "$work/$1" --strip-components=1
}

fabtests()
{
	local dir=/build/suites/libfabric/fabtests
	unpack libfabric
	in_tree "$dir" ./autogen.sh
	in_tree "$dir" ./configure --prefix=/usr
	in_tree "$dir" make -j "$JOBS"
	in_tree "$dir" make install-strip "DESTDIR=/build/suites/out"
}

suites()
{
	[ ! -d "$SUITES_DIR" ] || return 0
	work=$GUEST_TREE/build/suites
	say "building fabtests (once on this machine, some minutes)"
	as_root rm -rf "$work" "$SUITES_DIR.tmp"
	as_root install -d -o "$(id -u)" -g "$(id -g)" "$work"
	mkdir -p "$work/out"
	logged "$GUEST_DIR/suites.log" "could not build fabtests; see above" fabtests
	mkdir -p "$SUITES_DIR.tmp"
	sync_tree "$work/out/usr/" "$SUITES_DIR.tmp"
	mv -T "$SUITES_DIR.tmp" "$SUITES_DIR"
}

need_root "build in the guest tree"
run_script guest.sh
apt_setup "$GUEST_SUITE"
locked suites suites
say "done: ${SUITES_DIR##*/}"
