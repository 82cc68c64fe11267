#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes a clean system of Debian and installs packages from a folder in it, as apt does
# for a user: with all that they depend on, from the archive.
#
#   system.sh DEBS ROOT

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../../scripts/common.sh"
debs=$1
root=$2
uri=$(debian_uri)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
scratch=$(mktemp -d)
cp "$debs"/*.deb "$scratch/"
(cd "$scratch" && dpkg-scanpackages --multiversion . > Packages) 2> /dev/null
printf 'deb [signed-by=%s] %s %s main\ndeb [trusted=yes] copy:%s ./\n' "$keyring" "$uri" "$GUEST_SUITE" \
	"$scratch" > "$scratch/sources.list"
apt-config dump --no-empty Acquire | grep -E '^Acquire::(http|https|Check-)' > "$scratch/aptopt" || true
as_root mmdebstrap --variant=apt --mode=root --aptopt="$scratch/aptopt" \
	--aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
	--include=linux-image-amd64,linux-headers-amd64,initramfs-tools,kmod,iproute2,ibverbs-utils,lintian \
	--include=qhca-dkms,libqhca1,libqhca-dev,qemu-system-qhca,qhca-switch \
	"$GUEST_SUITE" "$root" "$scratch/sources.list"
as_root mkdir -p "$root/mnt/debs"
as_root cp "$scratch"/*.deb "$root/mnt/debs/"
