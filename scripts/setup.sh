#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Installs what this Debian machine lacks. Asks nothing, does nothing when
# nothing is missing.
#
#   scripts/setup.sh [all|plots|kernel]
#
#   all      says at once if root or the disk space for all parts cannot be had
#   plots    installs what draws the plots of `make bench` and `make study`, too
#   kernel   installs what a Linux tree of the user's is built with, too, for tests

SCRIPT_NAME=setup
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

packages=(
	# building
	bison build-essential ca-certificates cpio device-tree-compiler flex
	libdeflate-dev libfdt-dev libglib2.0-dev libjansson-dev libpixman-1-dev libslirp-dev
	libcmocka-dev ninja-build pkg-config python3-venv rsync xz-utils zstd
	# guest image
	debian-archive-keyring e2fsprogs fdisk kmod mmdebstrap
	# firmware that QEMU loads
	seabios qemu-system-data ipxe-qemu
	# tests
	clang dwarves git iproute2 libclang-rt-dev python3-pytest shellcheck tshark procps valgrind
	# virtme-ng
	file python3-argcomplete python3-pkg-resources python3-requests
)
[ "${1:-}" != plots ] || packages+=(python3-matplotlib)
[ "${1:-}" != kernel ] || packages+=(bc libelf-dev libssl-dev)
# QEMU wants newer ones of these than Debian 12 has.
meson_packages=(meson python3-pycotap)
meson_wanted=1.5.0
packages_space=2000

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

# What all parts need that are not made yet is asked for once, before minutes of
# work.
space_for_all()
{
	local megabytes=0
	compgen -G "$CACHE/qemu-*/built" > /dev/null || megabytes=$((megabytes + QEMU_SPACE))
	[ -d "$GUEST_TREE" ] || megabytes=$((megabytes + GUEST_SPACE))
	need_space "$CACHE" "$megabytes" "building all"
}

update()
{
	# One of the machine's many sources may be of no use today.
	as_root apt-get -q -o APT::Update::Error-Mode=any update ||
		echo "not all of the package lists could be read"
}

# Debian 12's own meson is too old.
install_meson()
{
	local -a conf=()
	if [ "${VERSION_ID:-}" = 12 ]; then
		apt_setup "$HOST_BACKPORTS_SUITE"
		conf=(-c "$CACHE/apt/$HOST_BACKPORTS_SUITE/apt.conf")
		say "installing ${meson_packages[*]} from $HOST_BACKPORTS_SUITE"
	fi
	logged "$CACHE/log/setup-meson.log" "could not install ${meson_packages[*]}; see above, and check the network" \
		apt_install "${conf[@]}" "${meson_packages[@]}"
}

setup()
{
	local missing=() p meson=

	for p in "${packages[@]}"; do
		installed "$p" || missing+=("$p")
	done
	if dpkg --compare-versions "$(meson_version)" lt "$meson_wanted" || ! installed python3-pycotap; then
		meson=1
	fi
	if [ ${#missing[@]} -gt 0 ] || [ -n "$meson" ]; then
		need_root "install packages (${missing[*]} ${meson:+${meson_packages[*]}})"
		need_space / "$packages_space" "installing packages"
	fi
	if [ ${#missing[@]} -gt 0 ]; then
		say "installing ${#missing[@]} packages: ${missing[*]}"
		logged "$CACHE/log/setup-update.log" "apt-get update failed; see above" update
		logged "$CACHE/log/setup-install.log" \
			"could not install packages; see above, and check the network and apt's sources" \
			apt_install "${missing[@]}"
	fi
	[ -z "$meson" ] || install_meson
}

{ mkdir -p "$CACHE" && [ -w "$CACHE" ]; } 2> /dev/null ||
	die "cannot write $CACHE: set QHCA_CACHE to a folder of yours"
if [ "${1:-}" = all ]; then
	need_root "make the guest and build in it"
	space_for_all
fi
locked setup setup
