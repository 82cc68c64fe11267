#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Installs what this Debian machine lacks. Asks nothing, does nothing when
# nothing is missing.
#
#   scripts/setup.sh [study]     study: what only `make study` needs, too

SCRIPT_NAME=setup
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

packages=(
	# building
	bison build-essential ca-certificates cpio device-tree-compiler flex
	libdeflate-dev libfdt-dev libglib2.0-dev libpixman-1-dev libslirp-dev
	libcmocka-dev ninja-build pkg-config python3-venv rsync xz-utils zstd
	# guest image
	debian-archive-keyring e2fsprogs fdisk kmod mmdebstrap
	# firmware that QEMU loads
	seabios qemu-system-data ipxe-qemu
	# tests
	dwarves git python3-pytest shellcheck tshark procps
	# virtme-ng
	file python3-argcomplete python3-pkg-resources python3-requests
)
[ "${1:-}" != study ] || packages+=(python3-matplotlib)
# QEMU wants newer ones of these than Debian 12 has.
meson_packages=(meson python3-pycotap)
meson_wanted=1.5.0

. /etc/os-release
case ${ID:-}:${VERSION_ID:-} in
debian:12 | debian:13) ;;
*) say "this is ${PRETTY_NAME:-an unknown system}; the set-up is made for Debian 12 and 13, going on as if it were" ;;
esac
[ "$(uname -m)" = x86_64 ] || die "this builds an x86_64 guest on an x86_64 machine; this one is $(uname -m)"
command -v apt-get > /dev/null || die "no apt-get: install by hand: ${packages[*]} ${meson_packages[*]}"

installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]
}

apt_install()
{
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold \
		-o Acquire::Retries=3 install --no-install-recommends "$@"
}

meson_version()
{
	dpkg-query -W -f '${Version}' meson 2> /dev/null || echo 0
}

setup()
{
	local missing=() p

	for p in "${packages[@]}"; do
		installed "$p" || missing+=("$p")
	done
	if [ ${#missing[@]} -gt 0 ]; then
		need_space / 1500 "installing packages"
		say "installing ${#missing[@]} packages: ${missing[*]}"
		logged "$CACHE/log/setup-update.log" as_root apt-get -q update ||
			die "apt-get update failed: check the network and apt's sources"
		logged "$CACHE/log/setup-install.log" apt_install "${missing[@]}" ||
			die "could not install packages; see above"
	fi
	if dpkg --compare-versions "$(meson_version)" lt "$meson_wanted" ||
		! installed python3-pycotap; then
		if [ "${VERSION_ID:-}" = 12 ]; then
			apt_setup "$HOST_BACKPORTS_SUITE"
			say "installing ${meson_packages[*]} from $HOST_BACKPORTS_SUITE"
			logged "$CACHE/log/setup-meson.log" as_root env DEBIAN_FRONTEND=noninteractive \
				apt-get -c "$CACHE/apt/$HOST_BACKPORTS_SUITE/apt.conf" -q -y \
				-o DPkg::Lock::Timeout=600 \
				install --no-install-recommends "${meson_packages[@]}" ||
				die "could not install ${meson_packages[*]} from $HOST_BACKPORTS_SUITE"
		else
			logged "$CACHE/log/setup-meson.log" apt_install "${meson_packages[@]}" ||
				die "could not install ${meson_packages[*]}"
		fi
	fi
}

mkdir -p "$CACHE" 2> /dev/null || die "cannot write $CACHE: set QHCA_CACHE to a folder of yours"
locked setup setup
