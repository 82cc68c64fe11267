#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# unshare: the command of in_tree in its folder, without a mount and a chroot

shift 3
tree=$5 seen=$7 dir=$8
[ -z "$seen" ] || printf '%s\n' "$seen" > "$WORLD/seen"
shift 8
cd $tree$dir && exec "$@"
