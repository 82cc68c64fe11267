#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds the provider in rdma-core's source tree, in the guest tree, of the
# version whose libibverbs the guest has; leaves it in build/provider/.
#
#   scripts/provider.sh [package]     "package": for scripts/deb.sh, installed as
#                                     rdma-core installs it, in build/package/provider/
#
# RDMA_CORE_SRC=DIR   one's own rdma-core tree, now and in later runs; all of its
#                     libraries then go to the guest with the provider, since
#                     libraries of two releases do not fit together;
#                     RDMA_CORE_SRC= goes back to Debian's

SCRIPT_NAME=provider
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

source=$TOP/userspace-provider/providers/qhca
options=(-DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DENABLE_STATIC=0 -DCMAKE_BUILD_TYPE=RelWithDebInfo
	-DENABLE_WERROR=0)
own_tree RDMA_CORE_SRC CMakeLists.txt "rdma-core source tree"
if [ -z "$RDMA_CORE_SRC" ]; then
	name=rdma-core
	options+=(-DIN_PLACE=1)
else
	# Its libibverbs is to look for providers where guests have them.
	options+=(-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc
		-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu)
	[ "${1:-}" != pyverbs ] || options+=(-DNO_PYVERBS=0)
	name=rdma-core-own-$(hash_of "$RDMA_CORE_SRC" "${options[@]}")
fi
# There is no target for the libraries alone.
targets=(qhca qhca_test_rings)
[ -z "$RDMA_CORE_SRC" ] || targets=(all)
[ "${1:-}" != pyverbs ] || targets=({libibverbs,librdmacm,providers/qhca,providers/rxe,pyverbs}/all)
work=$GUEST_TREE/build/$name
out=$BUILD/provider

own_source()
{
	local version
	version=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)").*/\1/p' "$RDMA_CORE_SRC/CMakeLists.txt")
	[ -z "$version" ] ||
		warn_of_range rdma-core "$version" "$RDMA_CORE_SERIES" "$NEWEST_RDMA_CORE_SERIES"
	as_root install -d -o "$(id -u)" -g "$(id -g)" "$work"
	sync_tree "$RDMA_CORE_SRC/" "$work/src" --exclude=/.git --exclude=/build --exclude=/providers/qhca \
		--exclude=/CMakeLists.txt --exclude=/kernel-headers/CMakeLists.txt \
		--exclude=/kernel-headers/rdma/qhca-abi.h
	put "$RDMA_CORE_SRC/CMakeLists.txt" "$work/CMakeLists.txt.orig"
	put "$RDMA_CORE_SRC/kernel-headers/CMakeLists.txt" "$work/kernel-headers.txt.orig"
}

# The lines any provider adds to rdma-core's build. To optimize the C that cython writes would
# take longer than all else, and gain nothing; the variable has options of pyverbs alone.
register()
{
	local src=$work/src
	[ -e "$work/CMakeLists.txt.orig" ] || put "$src/CMakeLists.txt" "$work/CMakeLists.txt.orig"
	[ -e "$work/kernel-headers.txt.orig" ] || put "$src/kernel-headers/CMakeLists.txt" "$work/kernel-headers.txt.orig"
	sed -e 's,^add_subdirectory(providers/rxe),add_subdirectory(providers/qhca)\n&,' \
		-e 's,^add_subdirectory(providers/rxe/man),add_subdirectory(providers/qhca/man)\n&,' \
		-e 's,^  add_subdirectory(pyverbs),  set(NO_VAR_TRACKING_FLAGS "-O0 -g0")\n&,' \
		"$work/CMakeLists.txt.orig" | write_if_changed "$src/CMakeLists.txt"
	# Once in the list of headers, once in that of provider ABIs.
	sed -E 's,^( *)rdma/rdma_user_rxe\.h,\1rdma/qhca-abi.h\n&,' \
		"$work/kernel-headers.txt.orig" | write_if_changed "$src/kernel-headers/CMakeLists.txt"
	grep -q providers/qhca "$src/CMakeLists.txt" && grep -q qhca-abi "$src/kernel-headers/CMakeLists.txt" ||
		die "this rdma-core's CMakeLists.txt is not laid out as expected; add providers/qhca by hand"
}

# Debian's compiler and rdma-core are of one version each, so a warning is the provider's fault.
lists()
{
	[ -n "$RDMA_CORE_SRC" ] || echo "add_compile_options(-Werror)"
	cat "$source/CMakeLists.txt"
}

stage()
{
	local abi=$TOP/drivers/include
	sync_tree "$source/" "$work/src/providers/qhca" --exclude=/qhca_hw.h --exclude=/CMakeLists.txt
	lists | write_if_changed "$work/src/providers/qhca/CMakeLists.txt"
	rsync -lp --checksum "$abi/uapi/rdma/qhca-abi.h" "$work/src/kernel-headers/rdma/qhca-abi.h"
	rsync -lp --checksum "$abi/qhca/qhca_hw.h" "$work/src/providers/qhca/qhca_hw.h"
	register
}

# unpack_into FOLDER PACKAGE...: of the guest's release
unpack_into()
{
	local dir=$1 p
	shift
	for p; do
		fetch_deb "$GUEST_SUITE" "$p" "$dir/deb"
		dpkg -x "$fetched" "$dir"
	done
	rm -rf "$dir/deb"
}

# What pyverbs is compiled with is fetched for it alone; neither the guest nor the guest tree
# has it.
fetch_cython()
{
	[ ! -e "$work/packages.fetched" ] || return 0
	apt_setup "$GUEST_SUITE"
	unpack_into "$work/packages" cython3 "lib$python-dev"
	touch "$work/packages.fetched"
}

# in_build COMMAND...: in the folder of the build. Python's header of the machine's
# architecture lies beside those of its version.
in_build()
{
	local packages=/build/$name/packages/usr
	in_tree "/build/$name/build" env PYTHONPATH="$packages/lib/python3/dist-packages" \
		C_INCLUDE_PATH="$packages/include" "$@"
}

configure()
{
	mkdir -p "$work/build"
	in_build cmake -G Ninja "${options[@]}" ../src
}

# plugin FROM TO: a provider as libibverbs finds it, in a folder below the libraries'
plugin()
{
	local library
	if [ -L "$1" ]; then
		library=$(readlink "$1")
		ln -s "../${library##*/}" "$2"
	else
		cp "$1" "$2"
	fi
}

build()
{
	local so pabi other
	[ -z "$RDMA_CORE_SRC" ] || own_source
	stage
	if [ ! -e "$work/build/build.ninja" ]; then
		say "configuring rdma-core"
		rm -rf "$work/build"
		logged "$BUILD/log/provider-configure.log" "rdma-core does not configure; see above" configure
	fi
	say "building the provider"
	# Other checkouts build here too: none of theirs is to be taken for this one's.
	rm -f "$work"/build/lib/libqhca*
	logged "$BUILD/log/provider.log" "the provider does not build; see above" \
		in_build sh -c 'ninja build.ninja && ninja -j "$@"' sh "$JOBS" "${targets[@]}"
	! grep -A 4 'warning:' "$BUILD/log/provider.log" >&2 || [ -z "${WERROR:-}" ] ||
		die "the provider builds with warnings"
	so=$(find "$work/build/lib" -name 'libqhca.so.*.*' | first_line)
	[ -n "$so" ] || die "the build made no libqhca.so"
	pabi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\([0-9]*\)").*/\1/p' "$work/src/CMakeLists.txt")
	[ -n "$pabi" ] || die "this rdma-core does not tell its IBVERBS_PABI_VERSION"
	rm -rf "$out.new"
	mkdir -p "$out.new/lib" "$out.new/include/infiniband"
	# A library that is also the plugin: one file by all its names, or a
	# program that links to it would have two.
	cp "$so" "$out.new/lib/"
	ln -s "${so##*/}" "$out.new/lib/libqhca.so.1"
	ln -s libqhca.so.1 "$out.new/lib/libqhca.so"
	ln -s lib/libqhca.so.1 "$out.new/libqhca-rdmav$pabi.so"
	cp "$source/qhcadv.h" "$out.new/include/infiniband/"
	echo "driver qhca" > "$out.new/qhca.driver"
	# Runs on this machine with the guest tree's libraries.
	mkdir -p "$out.new/test"
	cp "$work/build/bin/qhca_test_rings" "$out.new/test/"
	printf '%s:%s\n' "$work/build/lib" "$GUEST_TREE/usr/lib/x86_64-linux-gnu" > "$out.new/test/libraries"
	printf '%s\n' "$GUEST_TREE/usr/lib64/ld-linux-x86-64.so.2" > "$out.new/test/loader"
	if [ -n "$RDMA_CORE_SRC" ]; then
		# Test programs are linked with the tree's libraries, too: libqhca needs
		# the private symbols of the libibverbs that it was built with.
		find "$work/build/lib" -maxdepth 1 -name 'lib*.so*' ! -name '*-rdmav*' ! -name 'libqhca.*' \
			-exec cp -a -t "$out.new/lib" {} +
		mkdir "$out.new/providers"
		for other in "$work"/build/lib/*-rdmav"$pabi".so; do
			# A link may be there without the library, whose name has a version.
			[ -e "$other" ] || continue
			case ${other##*/} in
			libqhca-*) ;;
			*) plugin "$other" "$out.new/providers/${other##*/}" ;;
			esac
		done
	fi
	rm -rf "$out"
	mv -T "$out.new" "$out"
	say "built ${out#"$TOP/"}/${so##*/}"
}

# pandoc, which makes manual pages, with the libraries that the guest lacks. No user of a guest
# needs it, so that it lies beside the builds.
get_pandoc()
{
	local dir=$GUEST_TREE/build/pandoc
	[ ! -d "$dir" ] || return 0
	say "fetching pandoc"
	as_root rm -rf "$dir.tmp"
	as_root install -d -o "$(id -u)" -g "$(id -g)" "$dir.tmp"
	unpack_into "$dir.tmp" pandoc pandoc-data libyaml-0-2 liblua5.4-0
	cat > "$dir.tmp/pandoc" <<-'EOF'
	#!/bin/sh
	here=${0%/*}
	LD_LIBRARY_PATH=$here/usr/lib/x86_64-linux-gnu exec "$here/usr/bin/pandoc" \
		--data-dir="$here/usr/share/pandoc/data" "$@"
	EOF
	chmod 755 "$dir.tmp/pandoc"
	as_root mv -T "$dir.tmp" "$dir"
}

# What is not compiled is a link in the build, by a path of the guest tree's.
put_pyverbs()
{
	local out=$BUILD/pyverbs
	rm -rf "$out.new"
	mkdir -p "$out.new"
	sync_tree "$work/src/pyverbs/" "$out.new/pyverbs" --prune-empty-dirs --include='*/' --include='*.py' --exclude='*'
	rsync -r --no-links --info=nonreg0 "$work/build/python/pyverbs/" "$out.new/pyverbs"
	cp -r "$work/src/tests" "$out.new/"
	rm -rf "$out"
	mv -T "$out.new" "$out"
	say "built ${out#"$TOP/"}"
}

pyverbs()
{
	local python
	[ -n "$RDMA_CORE_SRC" ] || die "the guest has Debian's pyverbs: give a tree by RDMA_CORE_SRC="
	python=$(readlink "$GUEST_TREE/usr/bin/python3")
	options+=("-DPython_INCLUDE_DIR=/build/$name/packages/usr/include/$python"
		"-DPython_LIBRARY=/usr/lib/x86_64-linux-gnu/lib$python.so.1")
	fetch_cython
	build
	put_pyverbs
}

# The provider as rdma-core installs it, with its manual pages and without paths of the build
# in it, and the packages whose libraries it needs.
package()
{
	local dir=$work/build-package dest=$BUILD/package/provider
	[ -z "$RDMA_CORE_SRC" ] || die "packages are for Debian's libibverbs: RDMA_CORE_SRC= goes back to it"
	get_pandoc
	stage
	say "building the provider's package"
	mkdir -p "$dir/debian"
	printf 'Source: qhca\n\nPackage: libqhca1\nArchitecture: amd64\n' > "$dir/debian/control"
	rm -rf "$dir/installed" "$dest"
	# shellcheck disable=SC2016 # for the shell in the tree
	logged "$BUILD/log/provider-package.log" "the provider's package does not build; see above" \
		in_tree "/build/$name/build-package" sh -ec '
		eval "$(dpkg-buildflags --export=sh)"
		cmake -G Ninja -DNO_PYVERBS=1 -DNO_MAN_PAGES=0 -DENABLE_STATIC=0 \
			-DPANDOC_EXECUTABLE=/build/pandoc/pandoc -DCMAKE_INSTALL_PREFIX=/usr \
			-DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu ../src
		ninja -j "$1" qhca $(cd ../src/providers/qhca/man && printf "man-%s\n" *.md | sed "s/\.md\$//")
		for part in qhca qhca/man; do
			DESTDIR=$PWD/installed cmake -P "providers/$part/cmake_install.cmake"
		done
		dpkg-shlibdeps -O installed/usr/lib/x86_64-linux-gnu/libqhca.so.1.* > depends' sh "$JOBS"
	mkdir -p "$dest"
	cp -a "$dir/installed/." "$dest/"
	sed -n 's/^shlibs:Depends=//p' "$dir/depends" > "$dest/depends"
	[ -s "$dest/depends" ] || die "the provider's package needs no library: see $dir/depends"
}

[ -d "$source" ] || { say "no provider yet: nothing to build"; exit 0; }
need_root "build in the guest tree"
run_script guest.sh
case ${1:-} in
package)
	apt_setup "$GUEST_SUITE"
	locked "$name" package
	;;
pyverbs) locked "$name" pyverbs ;;
*) locked "$name" build ;;
esac
