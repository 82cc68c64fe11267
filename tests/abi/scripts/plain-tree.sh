#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes a Debian tree with packages, by default with two compilers, what makes manual pages,
# DKMS, and a kernel's headers. Prints its path, and that of rdma-core's source as Debian
# has it.
#
#   plain-tree.sh [PACKAGE...]

SCRIPT_NAME=plain-tree
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../../scripts/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

packages=(build-essential clang cmake ninja-build pkg-config libnl-3-dev libnl-route-3-dev
	libudev-dev pandoc python3-docutils man-db dkms openssl linux-headers-amd64)
[ $# -eq 0 ] || packages=("$@")
root=$CACHE/plain-tree-$GUEST_SUITE-$(hash_of "${packages[@]}")

make_root()
{
	[ ! -d "$root" ] || return 0
	need_space "$CACHE" 2000 "a Debian tree"
	say "making a Debian tree"
	as_root rm -rf "$root.tmp"
	logged "$CACHE/log/plain-tree.log" "could not make the tree; see above" \
		as_root mmdebstrap --variant=apt --mode=root --aptopt="$GUEST_DIR/aptopt" \
		--aptopt='APT::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--include="$(IFS=,; echo "${packages[*]}")" \
		"$GUEST_SUITE" "$root.tmp" "$GUEST_DIR/sources.list"
	as_root mkdir -m 1777 "$root.tmp/build"
	as_root mv -T "$root.tmp" "$root"
}

need_root "make a Debian tree"
locked plain-tree make_root
apt_setup "$GUEST_SUITE"
fetch_orig "$GUEST_SUITE" rdma-core "$CACHE/download"
# shellcheck disable=SC2154 # fetch_orig sets it
printf '%s\n' "$root" "$fetched"
