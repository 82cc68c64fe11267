#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Unpacks a tree as Debian has it, once, in the cache folder, and prints its path: what a
# user has who gives it by LINUX=, QEMU_SRC= or RDMA_CORE_SRC=.
#
#   unpack.sh linux        the guest's own kernel, from the package linux-source
#   unpack.sh qemu         the newest release of Debian's that the patches are made for
#   unpack.sh rdma-core    the newest release of Debian's

SCRIPT_NAME=unpack
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../../scripts/common.sh"

# newest SOURCE SERIES: Debian's newest version of a series
newest()
{
	local all
	all=$({ apt_in "$NEWEST_SUITE" apt-cache showsrc --only-source "$1" || true; } |
		awk '/^Version:/ { print $2 }' | sort -uV)
	version=$(awk -v s="$2." '{ upstream = $0; sub(/^[0-9]+:/, "", upstream) }
		index(upstream, s) == 1 { found = $0 } END { print found }' <<< "$all")
	[ -n "$version" ] ||
		die "$NEWEST_SUITE has no $1 $2, which versions.mk names, but ${all//$'\n'/ }: try its newest"
}

# name_tree NAME: after the upstream version
name_tree()
{
	tree=${version#*:}
	tree=${tree%-*}
	tree=$CACHE/trees/$1-${tree//[^0-9A-Za-z.]/_}
}

# unpack COMMAND...: a command writes the tree as a tar archive
unpack()
{
	[ ! -d "$tree" ] || return 0
	need_space "$CACHE" 6000 "a tree to build"
	rm -rf "$tree.tmp"
	mkdir -p "$tree.tmp"
	"$@" | tar -x -C "$tree.tmp" --strip-components=1
	mv -T "$tree.tmp" "$tree"
}

of_source()
{
	newest "$1" "$2"
	name_tree "$1"
	fetch_orig "$NEWEST_SUITE" "$1=$version" "$CACHE/download"
	case $fetched in
	*.gz) unpack gzip -dc "$fetched" ;;
	*) unpack xz -dc "$fetched" ;;
	esac
}

source_of_linux()
{
	dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/linux-source-$KERNEL_SERIES.tar.xz" | xz -dc
}

of_linux()
{
	local package=linux-source-$KERNEL_SERIES
	version=$({ apt_in "$GUEST_SUITE" apt-cache show --no-all-versions "$package" || true; } |
		awk '/^Version:/ { print $2 }')
	[ -n "$version" ] || die "$GUEST_SUITE has no $package"
	name_tree linux
	if [ ! -d "$tree" ]; then
		fetch_deb "$GUEST_SUITE" "$package=$version" "$CACHE/download/$package.tree"
	fi
	unpack source_of_linux "$fetched"
	rm -rf "$CACHE/download/$package.tree"
}

fetched=
case $1 in
linux)
	run_script setup.sh kernel
	apt_setup "$GUEST_SUITE"
	locked trees of_linux
	;;
qemu)
	apt_setup "$NEWEST_SUITE"
	locked trees of_source qemu "$NEWEST_QEMU_SERIES"
	;;
rdma-core)
	apt_setup "$NEWEST_SUITE"
	locked trees of_source rdma-core "$NEWEST_RDMA_CORE_SERIES"
	;;
*) die "there is no tree $1" ;;
esac
printf '%s\n' "$tree"
