#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Removes the target that nvmet-add.sh made.
#
#   nvmet-remove.sh NQN

cd /sys/kernel/config/nvmet || exit
rm -f ports/*/subsystems/"$1"
rmdir ports/*
rmdir "subsystems/$1/namespaces/1" "subsystems/$1"
modprobe -r nvmet-rdma brd
