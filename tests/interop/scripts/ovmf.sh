#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Fetches Debian's firmware for UEFI, once, into the cache folder. Prints the folder that
# has it as /usr/share/OVMF.

SCRIPT_NAME=ovmf
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../../scripts/common.sh"

folder=$CACHE/ovmf-$GUEST_SUITE

unpack()
{
	[ ! -d "$folder" ] || return 0
	fetch_deb "$GUEST_SUITE" ovmf "$folder.deb"
	rm -rf "$folder.tmp"
	dpkg -x "$fetched" "$folder.tmp"
	rm -rf "$folder.deb"
	mv -T "$folder.tmp" "$folder"
}

apt_setup "$GUEST_SUITE"
locked ovmf unpack
printf '%s\n' "$folder"
