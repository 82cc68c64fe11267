#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The first process of a machine whose system has the packages: runs a pingpong of the
# device with itself, as an outside user would, and ends the machine.

PATH=/usr/sbin:/usr/bin:/sbin:/bin

# Runs a command every second until it succeeds; after a minute it shows what it says.
until_it_works() {
	for _ in $(seq 60); do
		"$@" > /dev/null 2>&1 && return
		sleep 1
	done
	"$@"
}

has_gid() {
	grep -q ':ffff:0a4d:0001$' /sys/class/infiniband/qhca0/ports/1/gids/*
}

mount -t proc proc /proc 2> /dev/null
mount -t sysfs sys /sys 2> /dev/null
modprobe -a qhca qhca_ib ib_uverbs
ip link set lo up
netif=$(basename /sys/bus/pci/drivers/qhca/0*/net/*)
ip address add 10.77.0.1/24 dev "$netif"
ip link set "$netif" up
until_it_works has_gid
ibv_devices
gid=$(grep -l ':ffff:0a4d:0001$' /sys/class/infiniband/qhca0/ports/1/gids/* | head -n 1)
ibv_rc_pingpong -d qhca0 -g "${gid##*/}" &
until_it_works ibv_rc_pingpong -d qhca0 -g "${gid##*/}" 10.77.0.1 && echo "pingpong passed"
echo o > /proc/sysrq-trigger
sleep 60
