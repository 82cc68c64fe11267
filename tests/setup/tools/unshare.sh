#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# unshare: the command of in_tree in its folder, without a mount and a chroot

shift 3
tree=$5 dir=$7
shift 7
cd $tree$dir && exec "$@"
