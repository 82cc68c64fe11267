#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints how many address spaces the kernel has beyond those of the processes.
#
#   address-spaces.sh [LIMIT]
#
# Waits up to ten seconds until there are no more than LIMIT.

limit=$1
for _ in $(seq 20); do
	echo 1 > /sys/kernel/slab/mm_struct/shrink
	read -r spaces rest < /sys/kernel/slab/mm_struct/objects
	for status in /proc/[0-9]*/status; do
		while read -r name rest; do
			[ "$name" != VmSize: ] || spaces=$((spaces - 1))
		done < "$status"
	done 2> /dev/null
	[ -n "$limit" ] && [ "$spaces" -gt "$limit" ] || break
	sleep 0.5
done
echo "$spaces"
