#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs qhca-large in a memory control group of its own; with it the tables have to be
# charged to the group.
#
#   charged-tables.sh DEVICE

group=/sys/fs/cgroup/tables
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p $group
(
	echo $BASHPID > $group/cgroup.procs
	exec qhca-large -d "$1" -c $group/memory.stat
) 2>&1
code=$?
rmdir $group
exit $code
