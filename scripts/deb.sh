#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Makes Debian packages of what was built, in build/deb:
#
#   qhca-dkms          the modules, which DKMS builds for each kernel
#   libqhca1           the provider, beside Debian's libibverbs
#   libqhca-dev        its header and manual pages
#   qemu-system-qhca   QEMU with the device, beside Debian's QEMU
#   qhca-switch        the switch that joins guests
#
# They install on the suite of versions.mk. DEBFULLNAME and DEBEMAIL name the
# maintainer, as for Debian's tools; otherwise it is the author of the last commit.

SCRIPT_NAME=deb
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/guest-paths.sh
. "$TOP/scripts/guest-paths.sh"

out=$BUILD/deb
files=$TOP/packaging
libdir=usr/lib/x86_64-linux-gnu

in_git()
{
	git -C "$TOP" -c safe.directory="$TOP" "$@"
}

describe()
{
	version=$PACKAGE_VERSION maintainer='' epoch=$(date +%s)
	if [ -e "$TOP/.git" ]; then
		version+=+git$(in_git log -1 --date=format:%Y%m%d --format=%cd.%h)
		maintainer=$(in_git log -1 --format='%an <%ae>')
		epoch=$(in_git log -1 --format=%ct)
	fi
	[ -z "${DEBEMAIL:-}" ] || maintainer="${DEBFULLNAME:-$DEBEMAIL} <$DEBEMAIL>"
	[ -n "$maintainer" ] || die "a package needs a maintainer: give DEBFULLNAME and DEBEMAIL"
	export SOURCE_DATE_EPOCH=$epoch
}

# begin PACKAGE: an empty tree of a package
begin()
{
	package=$1
	root=$scratch/$package
	mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$package"
}

# filled FILE: one of packaging/ with its gaps filled
filled()
{
	sed "s/@VERSION@/$version/g" "$files/$1"
}

copyright()
{
	local line licence
	while IFS= read -r line; do
		case $line in
		' @'*)
			licence=${line# @}
			sed -e '1,/^License-Text:/d' -e 's/^$/./' -e 's/^/ /' "$TOP/LICENSES/${licence%@}"
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done < "$files/copyright"
}

# finish ARCHITECTURE FIELDS: writes the package; its description is read from stdin
finish()
{
	local doc=$root/usr/share/doc/$package size
	copyright > "$doc/copyright"
	{
		printf 'qhca (%s) unstable; urgency=medium\n\n  * Build of this version.\n\n' "$version"
		printf ' -- %s  %s\n' "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
	} | gzip -9n > "$doc/changelog.gz"
	find "$root" -type d -exec chmod 755 {} +
	find "$root" -type f -perm /111 -exec chmod 755 {} +
	find "$root" -type f ! -perm /111 -exec chmod 644 {} +
	size=$(du -sk --exclude=DEBIAN "$root" | cut -f 1)
	(cd "$root" && find . -path ./DEBIAN -prune -o -path ./etc -prune -o -type f -printf '%P\0' |
		sort -z | xargs -0 md5sum) > "$root/DEBIAN/md5sums"
	{
		printf 'Package: %s\nSource: qhca\nVersion: %s\nArchitecture: %s\n' "$package" "$version" "$1"
		printf 'Maintainer: %s\nInstalled-Size: %s\n%s\n' "$maintainer" "$size" "$2"
		cat
	} > "$root/DEBIAN/control"
	dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${package}_${version}_$1.deb" > /dev/null
	say "built ${out#"$TOP/"}/${package}_${version}_$1.deb"
}

# manual FROM: a tree of manual pages, which the package has compressed
manual()
{
	local to=$root/usr/share/man page
	mkdir -p "$to"
	cp -a "$1/." "$to/"
	find "$to" -type f -exec gzip -9n {} +
	find "$to" -type l | while read -r page; do
		ln -s "$(readlink "$page").gz" "$page.gz"
		rm "$page"
	done
}

# libraries_of FILE: the packages whose libraries it needs; run where it was built
libraries_of()
{
	dir=$(mktemp -d) && cd "$dir" && mkdir debian &&
		printf 'Source: qhca\n\nPackage: qhca\nArchitecture: amd64\n' > debian/control &&
		dpkg-shlibdeps -O "$1" | sed -n 's/^shlibs:Depends=//p' && rm -rf "$dir"
}

modules()
{
	local src
	begin qhca-dkms
	src=$root/usr/src/qhca-$version
	mkdir -p "$src"
	rsync -rlp --exclude='*.o' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' --exclude='*.cmd' \
		--exclude='*.order' --exclude='*.symvers' "$TOP/drivers" "$src/"
	printf 'obj-m += drivers/\n' > "$src/Kbuild"
	filled dkms.conf > "$src/dkms.conf"
	for script in postinst prerm; do
		filled "qhca-dkms.$script" > "$root/DEBIAN/$script"
		chmod 755 "$root/DEBIAN/$script"
	done
	finish all "Depends: dkms (>= 3)
Recommends: libqhca1
Section: kernel
Priority: optional" <<-EOF
	Description: RDMA adapter qhca: kernel modules
	 This package has the source of the drivers for the RDMA adapter qhca, a
	 device of QEMU. DKMS builds qhca.ko, qhca_ib.ko and, for kernels with VFIO,
	 qhca_vfio.ko for each installed kernel from 6.12 on.
	EOF
}

provider()
{
	local made=$BUILD/package/provider depends lib
	begin libqhca1
	mkdir -p "$root/$libdir/libibverbs" "$root/etc/libibverbs.d"
	cp -a "$made/$libdir"/libqhca.so.1* "$root/$libdir/"
	cp -a "$made/$libdir"/libibverbs/libqhca-rdmav*.so "$root/$libdir/libibverbs/"
	cp "$made/etc/libibverbs.d/qhca.driver" "$root/etc/libibverbs.d/"
	lib=$(find "$root/$libdir" -maxdepth 1 -type f)
	strip --strip-unneeded --remove-section=.comment "$lib"
	chmod 644 "$lib"
	echo /etc/libibverbs.d/qhca.driver > "$root/DEBIAN/conffiles"
	echo "activate-noawait ldconfig" > "$root/DEBIAN/triggers"
	echo "libqhca 1 libqhca1 (>= $version)" > "$root/DEBIAN/shlibs"
	depends=$(cat "$made/depends")
	# A provider uses functions of libibverbs that are private to a release.
	finish amd64 "Depends: $depends, libibverbs1 (>= $RDMA_CORE_SERIES), libibverbs1 (<< $((RDMA_CORE_SERIES + 1))~)
Recommends: rdma-core
Section: libs
Priority: optional" <<-EOF
	Description: RDMA adapter qhca: provider for libibverbs
	 Programs that use libibverbs find the RDMA adapter qhca, a device of QEMU,
	 with this library, which libibverbs loads by itself. Programs may also use
	 its own functions (libqhca-dev).
	EOF

	begin libqhca-dev
	mkdir -p "$root/$libdir" "$root/usr/include/infiniband"
	cp -a "$made/$libdir/libqhca.so" "$made/$libdir/pkgconfig" "$root/$libdir/"
	cp "$made/usr/include/infiniband/qhcadv.h" "$root/usr/include/infiniband/"
	manual "$made/usr/share/man"
	finish amd64 "Depends: libqhca1 (= $version), libibverbs-dev
Section: libdevel
Priority: optional" <<-EOF
	Description: RDMA adapter qhca: header of the provider
	 This package has the header and the manual pages of the functions that
	 libqhca has beyond those of libibverbs: memory of the pool of a device, and
	 thresholds of queues.
	EOF
}

qemu()
{
	local depends binary
	begin qemu-system-qhca
	binary=$root/usr/libexec/qhca/qemu-system-x86_64
	mkdir -p "${binary%/*}" "$root/usr/bin" "$root/usr/share/man/man1"
	cp "$BUILD/qemu/bin/qemu-system-x86_64" "$binary"
	strip --remove-section=.comment "$binary"
	depends=$(libraries_of "$binary")
	cp "$files/qemu-system-x86_64-qhca" "$root/usr/bin/"
	chmod 755 "$root/usr/bin/qemu-system-x86_64-qhca"
	gzip -9n < "$files/qemu-system-x86_64-qhca.1" > "$root/usr/share/man/man1/qemu-system-x86_64-qhca.1.gz"
	# The firmware is that of Debian's QEMU.
	finish amd64 "Depends: $depends, qemu-system-data, seabios, ipxe-qemu
Section: otherosfs
Priority: optional" <<-EOF
	Description: RDMA adapter qhca: QEMU with the device
	 The command qemu-system-x86_64-qhca is QEMU with the RDMA adapter qhca, which
	 speaks RoCEv2. It stands beside Debian's QEMU, and has no graphical display.
	EOF
}

switch()
{
	local depends binary
	begin qhca-switch
	binary=$root/usr/bin/qhca-switch
	mkdir -p "${binary%/*}" "$root/usr/share/man/man1"
	cp "$BUILD/switch/qhca-switch" "$binary"
	strip --remove-section=.comment "$binary"
	depends=$(libraries_of "$binary")
	gzip -9n < "$files/qhca-switch.1" > "$root/usr/share/man/man1/qhca-switch.1.gz"
	finish amd64 "Depends: $depends
Suggests: qemu-system-qhca
Section: net
Priority: optional" <<-EOF
	Description: RDMA adapter qhca: switch that joins guests
	 The command qhca-switch is an Ethernet switch whose ports are unix sockets. It
	 joins guests of QEMU without privileges, and has rates, latencies, queues and
	 counters for each port.
	EOF
}

describe
run_script provider.sh package
run_script qemu.sh
run_script switch.sh
scratch=$(mktemp -d)
rm -rf "$out"
mkdir -p "$out"
modules
provider
qemu
switch
say "done: version $version"
