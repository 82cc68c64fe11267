#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sends datagrams to an address as fast as it can, until it is killed. The interface
# may be down meanwhile.
#
#   flood.sh ADDRESS

while :; do
	dd if=/dev/zero bs=1400 count=200000 > "/dev/udp/$1/9" || sleep 0.01
done 2> /dev/null
