#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds QEMU with the qhca device in it.
#
#   scripts/qemu.sh [TARGET...]     ninja targets; default qemu-system-x86_64
#
# QEMU_SRC=DIR         one's own QEMU tree in place of Debian's (it is copied), now and
#                      in later runs; QEMU_SRC= goes back
# QEMU_SANITIZE=1      with AddressSanitizer and UBSan, in a build of its own
#
# The source and the build stay in the cache, so that QEMU itself is compiled
# once on a machine. The checkout's device files are copied in by content and
# the patches of qemu-hca/qemu/integration are applied to untouched copies of
# the files they name; ninja then sees exactly what changed.

SCRIPT_NAME=qemu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(qemu-system-x86_64)

options=(
	--target-list=x86_64-softmmu --without-default-features --enable-system
	--enable-tcg --enable-kvm --enable-slirp --enable-attr --enable-virtfs
	--enable-trace-backends=log --disable-docs --disable-install-blobs
	--disable-containers --python="$PYTHON"
)
variant=
if [ -n "${QEMU_SANITIZE:-}" ]; then
	options+=(--enable-asan --enable-ubsan)
	variant=-sanitize
fi
out=$BUILD/qemu$variant

fetch()
{
	local version key
	version=$(source_version "$GUEST_SUITE" qemu)
	case $version in
	*:"$QEMU_SERIES".*) ;;
	'') die "$GUEST_SUITE carries no source of QEMU, by the lists in $CACHE/apt/$GUEST_SUITE" ;;
	*) die "$GUEST_SUITE carries QEMU $version, versions.mk names the series $QEMU_SERIES: adjust QEMU_SERIES and try the patches on it" ;;
	esac
	version=${version#*:}
	version=${version%-*}
	key=$(hash_of "$QEMU_RECIPE" "${options[@]}")
	dir=$CACHE/qemu-${version//[^0-9A-Za-z.]/_}-$key
	[ ! -d "$dir/src" ] || return 0
	need_space "$CACHE" "$QEMU_SPACE" "building QEMU"
	fetch_orig "$GUEST_SUITE" qemu "$CACHE/download"
	say "unpacking QEMU $version"
	rm -rf "$dir/src.tmp"
	mkdir -p "$dir/src.tmp"
	tar -xf "$fetched" -C "$dir/src.tmp" --strip-components=1
	stand_in "$dir/src.tmp"
	mv "$dir/src.tmp" "$dir/src"
}

# Debian's tarball lacks firmware that meson insists on finding.
stand_in()
{
	local arch
	for arch in aarch64-code arm-code arm-vars i386-code i386-secure-code \
		i386-vars riscv-code riscv-vars x86_64-code x86_64-secure-code \
		loongarch64-code loongarch64-vars; do
		[ -e "$1/pc-bios/edk2-$arch.fd.bz2" ] || : > "$1/pc-bios/edk2-$arch.fd.bz2"
	done
}

own_source()
{
	local key
	key=$(hash_of "$QEMU_RECIPE" "$QEMU_SRC" "${options[@]}")
	dir=$CACHE/qemu-own-$key
	mkdir -p "$dir"
	say "copying $QEMU_SRC"
	# What the patches touch is left to patch_tree.
	{
		printf '/%s\n' .git build hw/rdma/qhca tests/qtest/qhca-\*
		[ ! -e "$dir/patched" ] || sed 's,^,/,' "$dir/patched"
	} > "$dir/exclude"
	sync_tree "$QEMU_SRC/" "$dir/src" --exclude-from="$dir/exclude"
	stand_in "$dir/src"
}

# Where the file as upstream has it is found; nothing for a file of ours.
pristine()
{
	local kept=$dir/pristine/$1
	if [ -n "$QEMU_SRC" ]; then
		kept=$QEMU_SRC/$1
	elif [ ! -e "$kept" ] && ! grep -qxF "$1" "$dir/patched" 2> /dev/null && [ -e "$dir/src/$1" ]; then
		put "$dir/src/$1" "$kept"
	fi
	[ ! -e "$kept" ] || printf '%s\n' "$kept"
}

# NAME+10.1.patch replaces NAME.patch from QEMU 10.1 on.
choose_patch()
{
	local p since version
	chosen=$1
	for p in "${1%.patch}"+*.patch; do
		[ -e "$p" ] || continue
		version=$(cat "$dir/src/VERSION")
		since=${p##*+}
		if dpkg --compare-versions "$version" ge "${since%.patch}"; then
			chosen=$p
		fi
	done
}

patch_tree()
{
	local integration=$TOP/qemu-hca/qemu/integration stage=$dir/stage file from names p
	local -a patches=() files=()

	if [ -f "$integration/series" ]; then
		while read -r p; do
			case $p in '' | '#'*) ;; *) patches+=("$integration/$p") ;; esac
		done < "$integration/series"
	else
		for p in "$integration"/*.patch; do
			case ${p##*/} in *+*) continue ;; esac
			[ -e "$p" ] || continue
			choose_patch "$p"
			patches+=("$chosen")
		done
	fi
	if [ ${#patches[@]} -gt 0 ]; then
		names=$(sed -n -E 's,^(---|\+\+\+) [ab]/([^	]*).*,\2,p' "${patches[@]}" | sort -u)
		mapfile -t files <<< "$names"
	fi

	rm -rf "$stage"
	mkdir -p "$stage"
	for file in "${files[@]}"; do
		from=$(pristine "$file")
		[ -n "$from" ] || continue
		mkdir -p "$stage/$(dirname "$file")"
		cp "$from" "$stage/$file"
	done
	[ -e "$dir/patched" ] || : > "$dir/patched"
	printf '%s\n' "${files[@]}" | cat - "$dir/patched" | sed '/^$/d' | sort -u > "$dir/patched.new"
	mv "$dir/patched.new" "$dir/patched"
	for p in "${patches[@]}"; do
		patch -s -p1 -d "$stage" --no-backup-if-mismatch < "$p" ||
			die "${p#"$TOP/"} does not apply to this QEMU"
	done
	# Files an earlier series touched and this one does not go back.
	while read -r file; do
		if [ -e "$stage/$file" ]; then
			from=$stage/$file
		elif printf '%s\n' "${files[@]}" | grep -qxF "$file"; then
			from=
		else
			from=$(pristine "$file")
		fi
		if [ -z "$from" ]; then
			rm -f "$dir/src/$file"
		elif ! cmp -s "$from" "$dir/src/$file"; then
			put "$from" "$dir/src/$file"
		fi
	done < "$dir/patched"
}

# Earlier releases make virtual functions whose BARs decode nothing.
warn_of_vfs()
{
	local version since
	[ -e "$dir/src/VERSION" ] || return 0
	version=$(cat "$dir/src/VERSION")
	case $version in
	10.1.*) since=10.1.2 ;;
	*) since=10.0.6 ;;
	esac
	dpkg --compare-versions "$version" ge "$since" ||
		say "QEMU $version does not map virtual functions, so the device refuses sriov-vfs; $since does"
}

device_files()
{
	local device=$dir/src/hw/rdma/qhca f
	if [ -d "$TOP/qemu-hca" ]; then
		sync_tree "$TOP/qemu-hca/" "$device" --exclude=/include --exclude=/qemu/integration --exclude='*.orig'
		[ ! -d "$TOP/drivers/include" ] || sync_tree "$TOP/drivers/include/" "$device/include"
	fi
	for f in "$TOP"/tests/qtest/*.[ch]; do
		[ ! -e "$f" ] || rsync -lp --checksum "$f" "$dir/src/tests/qtest/"
	done
}

configure()
{
	mkdir -p "$dir/build"
	env -C "$dir/build" -u CFLAGS -u CXXFLAGS -u LDFLAGS PATH="/usr/sbin:/usr/bin:/sbin:/bin" \
		../src/configure "${options[@]}"
}

compile()
{
	PATH="/usr/sbin:/usr/bin:/sbin:/bin" ninja -C "$dir/build" -j "$JOBS" "$@"
}

# QEMU finds its firmware in ../share/qemu, seen from where it runs.
install_out()
{
	local share=$out/share/qemu f target
	local -a firmware=()
	mkdir -p "$out/bin" "$share"
	for f in /usr/share/seabios/*.bin /usr/share/qemu/*.bin /usr/share/qemu/*.rom \
		/usr/lib/ipxe/qemu/efi-virtio.rom /usr/lib/ipxe/qemu/efi-e1000e.rom; do
		[ ! -e "$f" ] || firmware+=("$f")
	done
	rsync -L --checksum "${firmware[@]}" "$share/"
	for target in "${targets[@]}"; do
		if [ -f "$dir/build/$target" ] && ! cmp -s "$dir/build/$target" "$out/bin/${target##*/}"; then
			put "$dir/build/$target" "$out/bin/${target##*/}"
		fi
	done
	printf '%s\n' "$dir/src" > "$out/source"
}

build()
{
	if [ -n "$QEMU_SRC" ]; then
		own_source
		[ ! -e "$dir/src/VERSION" ] ||
			warn_of_range QEMU "$(cat "$dir/src/VERSION")" "$QEMU_SERIES" "$NEWEST_QEMU_SERIES"
	else
		fetch
	fi
	warn_of_vfs
	# Before the first build: what the patches add to QAPI goes into most
	# of QEMU's objects, which would have to be compiled a second time.
	patch_tree
	device_files
	if [ ! -e "$dir/configured" ]; then
		rm -rf "$dir/build"
		say "configuring QEMU"
		logged "$dir/configure.log" "QEMU does not configure; see above" configure
		touch "$dir/configured"
	fi
	if [ -e "$dir/built" ]; then
		say "compiling ${targets[*]}"
	else
		say "compiling QEMU (once on this machine, some minutes)"
	fi
	logged "$dir/device.log" "QEMU with the device does not build; see above" compile "${targets[@]}"
	touch "$dir/built"
	if grep -q 'warning:' "$dir/device.log"; then
		grep -A 6 'warning:' "$dir/device.log" >&2 || true
	fi
	install_out
	say "done: ${out#"$TOP/"}/bin"
}

own_tree QEMU_SRC configure "QEMU source tree"
run_script setup.sh
# Disk space is asked for before anything is read or made.
compgen -G "$CACHE/qemu-*/built" > /dev/null || need_space "$CACHE" "$QEMU_SPACE" "building QEMU"
[ -n "$QEMU_SRC" ] || apt_setup "$GUEST_SUITE"
locked "qemu$variant${QEMU_SRC:+-own}" build
