#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs a test that is a module: loads it, unloads it if it loaded, and prints what the
# kernel has logged.
#
#   run-module.sh NAME [PARAMETER...]

name=$1
shift
echo "$name: begins" > /dev/kmsg
insmod "/tmp/$name.ko" "$@"
code=$?
[ $code != 0 ] || rmmod "$name"
dmesg
exit $code
