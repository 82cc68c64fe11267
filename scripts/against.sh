#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds QEMU, modules and provider of another commit of this checkout, for
# make bench AGAINST=COMMIT, and prints the folder of that tree.
#
#   scripts/against.sh COMMIT [backports]     for the suite's own kernel, or the newer one
#
# The tree is unpacked into build/against/ and built by its own scripts. Both trees
# are measured in the same guest, so the guest's recipe and the versions are those of
# this checkout.

SCRIPT_NAME=against
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

[ -n "${1:-}" ] || die "name a commit"
kernel=()
case ${2:-default} in
default) ;;
backports) kernel=(backports) ;;
*) die "KERNEL=$2: AGAINST= is for the suite's own kernel and for backports" ;;
esac
# A suite of tests is not what is compared.
chosen=$(sed -e '/^RDMA_UNIT_TEST_SRC=/d' -e '/^BLKTESTS_SRC=/d' -e 's/=.*//' "$BUILD/trees" 2> /dev/null | paste -s -d ' ' || true)
[ -z "$chosen" ] ||
	die "AGAINST= builds with Debian's sources: take $chosen back first, each by an empty value"
commit=$(git -C "$TOP" rev-parse --verify --quiet "$1^{commit}") ||
	die "this checkout has no commit $1"
old=$BUILD/against/${commit:0:12}

unpack()
{
	say "unpacking $commit"
	rm -rf "$old.tmp"
	mkdir -p "$old.tmp"
	git -C "$TOP" archive "$commit" | tar -x -C "$old.tmp"
	mv -T "$old.tmp" "$old"
}

# The guest is that of this checkout. A cache of its own has the sources of QEMU: those in
# the cache are shared by checkouts, and a change of QAPI compiles most of QEMU again.
share_guest()
{
	local f
	for f in guest.sh guest-paths.sh guest-init initramfs.sh; do
		rsync -lp --checksum "$TOP/scripts/$f" "$old/scripts/$f"
	done
	# The later of two assignments holds.
	{
		git -C "$TOP" show "$commit:versions.mk"
		cat "$TOP/versions.mk"
	} | write_if_changed "$old/versions.mk"
	mkdir -p "$CACHE/against/lock"
	for f in apt download "${GUEST_DIR##*/}"; do
		ln -sfnT "$CACHE/$f" "$CACHE/against/$f"
	done
	# Builds in the guest's tree must wait for each other.
	for f in guest rdma-core apt-"$GUEST_SUITE" apt-"$BACKPORTS_SUITE"; do
		ln -sfnT "$CACHE/lock/$f" "$CACHE/against/lock/$f"
	done
}

build()
{
	[ -d "$old" ] || unpack
	run_script guest.sh >&2
	share_guest
	say "building $commit"
	export BUILD=$old/build QHCA_CACHE=$CACHE/against
	unset QEMU_SRC RDMA_CORE_SRC KDIR LINUX CC
	# The scripts explain their errors.
	explained=1
	"$old/scripts/qemu.sh" >&2
	"$old/scripts/modules.sh" "${kernel[@]}" >&2
	"$old/scripts/provider.sh" >&2
	explained=
}

locked "against-$(hash_of "$BUILD")" build
printf '%s\n' "$old"
