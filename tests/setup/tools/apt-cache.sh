#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# apt-cache: the versions that the archive has

[ "$1" != -c ] || { [ -e ${2%/*}/lists/Packages ] || exit 100; shift 2; }
case "$*" in
*"--only-source qemu") echo "Version: 1:10.0.2+ds-1" ;;
*linux-image-amd64) echo "Depends: linux-image-7.2.1-amd64 (= 7.2.1-1)" ;;
*) exit 100 ;;
esac
