#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds what tests of other people's programs need and Debian does not build: fabtests, which
# is in libfabric's source, and diod with its transport over RDMA. They are built in the guest
# tree, and lie in the cache beside it; they do not depend on the checkout.
#
# RDMA_UNIT_TEST_SRC=DIR   a tree of google/rdma-unit-test, which Debian has not at all, now
#                          and in later runs; its tests of one machine are built as well, in
#                          build/rdma-unit-test/; RDMA_UNIT_TEST_SRC= leaves them out again
# BLKTESTS_SRC=DIR         the same for a tree of blktests, in build/blktests/

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

# Debian builds it without RDMA. Its source needs what headers once gave it.
diod()
{
	local dir=/build/suites/diod part
	unpack diod
	sed -i 's,<attr/xattr.h>,<sys/xattr.h>,' "$work"/diod/diod/*.c
	in_tree "$dir" ./autogen.sh
	in_tree "$dir" ./configure --enable-rdmatrans \
		CPPFLAGS="-D_GNU_SOURCE -DENOATTR=ENODATA -include sys/sysmacros.h"
	for part in liblsd libnpfs libnpclient libdiod diod; do
		in_tree "$dir" make -C "$part" -j "$JOBS"
	done
	install -s -D "$work/diod/diod/diod" "$work/out/usr/sbin/diod"
}

# suite FUNCTION FOLDER: has a function build what a folder of the cache is to have
suite()
{
	local dir=$2
	[ ! -d "$dir" ] || return 0
	work=$GUEST_TREE/build/suites
	say "building $1 (once on this machine)"
	as_root rm -rf "$work" "$dir.tmp"
	as_root install -d -o "$(id -u)" -g "$(id -g)" "$work"
	mkdir -p "$work/out"
	logged "$dir.log" "could not build $1; see above" "$1"
	mkdir -p "$dir.tmp"
	sync_tree "$work/out/usr/" "$dir.tmp"
	mv -T "$dir.tmp" "$dir"
}

# The names and the contents of a tree's files.
content_of()
{
	(cd "$1" && find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum)
}

# The day of a tree's newest commit, or what stands for its contents.
date_of()
{
	{ [ -e "$1/.git" ] && git -C "$1" log -1 --format=%cs 2> /dev/null; } ||
		hash_of "$(content_of "$1")"
}

# The tree's sources as Debian's libraries need them: abseil's string_view is a type of its
# own there.
unit_test_source()
{
	local src=$work/src file
	sync_tree "$RDMA_UNIT_TEST_SRC/" "$src" --exclude=/.git
	for file in "$src"/internal/introspection_*.{h,cc} "$src/public/introspection.cc"; do
		sed -i -E 's/std::string_view/absl::string_view/g
			s,#include <string_view>,#include "absl/strings/string_view.h",
			s/magic_enum::enum_name\((\w+)\)/std::string(&)/' "$file"
	done
	# A device that the suite does not know fails it at once.
	cp "$recipe/introspection_qhca.h" "$src/internal/"
	sed -i -E 's,^#include "internal/introspection_rxe.h",#include "internal/introspection_qhca.h"\n&,
		s/^( *)rdma_unit_test::IntrospectionRxe::Register.*/\1rdma_unit_test::IntrospectionQhca::Register();\n&/' \
		"$src/unit/gunit_main.cc"
}

unit_test_build()
{
	local dir=/build/$name
	in_tree "$dir" cmake -G Ninja -B build -S . \
		-DSOURCE="$dir/src" -DPACKAGES="$dir/packages"
	in_tree "$dir" ninja -C build -j "$JOBS"
}

unit_test()
{
	local recipe=$TOP/tests/suites/unit_test out=$BUILD/rdma-unit-test name work p
	local -a packages
	# What was built of these sources by this recipe is still there.
	name=rdma-unit-test-$(hash_of "$(content_of "$RDMA_UNIT_TEST_SRC")" \
		"$(declare -f unit_test_source unit_test_build unit_test)" "$(cat "$recipe"/*)")
	work=$GUEST_TREE/build/$name
	if [ ! -x "$work/build/rdma_unit_test" ]; then
		say "building rdma-unit-test (some minutes)"
		as_root rm -rf "$work"
		as_root install -d -o "$(id -u)" -g "$(id -g)" "$work"
		packages=(libgtest-dev libgmock-dev googletest libmagicenum-dev libabsl-dev)
		packages+=("$(apt_in "$GUEST_SUITE" apt-cache depends libabsl-dev |
			sed -n 's/.*Depends: \(libabsl[0-9].*\)/\1/p')")
		for p in "${packages[@]}"; do
			fetch_deb "$GUEST_SUITE" "$p" "$work/deb"
			dpkg -x "$fetched" "$work/packages"
		done
		unit_test_source
		cp "$recipe/CMakeLists.txt" "$work/"
		logged "$BUILD/log/rdma-unit-test.log" "rdma-unit-test does not build; see above" unit_test_build
		strip "$work/build/rdma_unit_test"
	fi
	rm -rf "$out.new"
	mkdir -p "$out.new"
	cp "$work/build/rdma_unit_test" "$out.new/"
	cp -P "$work"/packages/usr/lib/x86_64-linux-gnu/libabsl_*.so.* "$out.new/"
	date_of "$RDMA_UNIT_TEST_SRC" > "$out.new/version"
	rm -rf "$out"
	mv -T "$out.new" "$out"
}

blktests_build()
{
	in_tree "/build/$name/tree/src" make -j "$JOBS"
}

# blktests runs where it lies, in tree/. packages/ has the programs that it calls and the guest
# lacks, with their libraries.
blktests()
{
	local out=$BUILD/blktests name work p
	local packages=(gawk libsigsegv2 bsdextrautils
		xfsprogs libinih1 liburcu8t64 e2fsprogs libext2fs2t64 libss2 libcom-err2
		multipath-tools kpartx dmsetup libdevmapper1.02.1 libaio1t64 libedit2 libbsd0 libmd0
		libjson-c5 sg3-utils libsgutils2-1.48)
	name=blktests-$(hash_of "$(content_of "$BLKTESTS_SRC")" "$(declare -f blktests_build blktests)")
	work=$GUEST_TREE/build/$name
	if [ ! -e "$work/built" ]; then
		say "building blktests"
		as_root rm -rf "$work"
		as_root install -d -o "$(id -u)" -g "$(id -g)" "$work"
		for p in "${packages[@]}"; do
			fetch_deb "$GUEST_SUITE" "$p" "$work/deb"
			dpkg -x "$fetched" "$work/packages"
		done
		sync_tree "$BLKTESTS_SRC/" "$work/tree" --exclude=/.git --exclude=/results
		logged "$BUILD/log/blktests.log" "blktests does not build; see above" blktests_build
		touch "$work/built"
	fi
	rm -rf "$out.new"
	sync_tree "$work/tree/" "$out.new/tree"
	sync_tree "$work/packages/" "$out.new/packages" --exclude=/usr/share
	mkdir "$out.new/bin"
	cp "$TOP/tests/suites/blktests/rdma" "$out.new/bin/"
	date_of "$BLKTESTS_SRC" > "$out.new/version"
	rm -rf "$out"
	mv -T "$out.new" "$out"
}

# build_or_remove VARIABLE FUNCTION FOLDER: what is built of a tree of the user's
build_or_remove()
{
	if [ -n "${!1}" ]; then
		locked suites "$2"
	else
		rm -rf "${BUILD:?}/$3"
	fi
}

own_tree RDMA_UNIT_TEST_SRC unit/gunit_main.cc "rdma-unit-test tree"
own_tree BLKTESTS_SRC tests/nvme/rc "blktests tree"
need_root "build in the guest tree"
run_script guest.sh
apt_setup "$GUEST_SUITE"
locked suites suite fabtests "$SUITES_DIR"
locked suites suite diod "$DIOD_DIR"
build_or_remove RDMA_UNIT_TEST_SRC unit_test rdma-unit-test
build_or_remove BLKTESTS_SRC blktests blktests
say "done: ${SUITES_DIR##*/}"
