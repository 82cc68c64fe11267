#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Loads the drivers, awaits the RDMA device and unloads them, so many times.
#
#   load-cycles.sh NUMBER

set -e
for _ in $(seq "$1"); do
	insmod /run/qhca/modules/qhca.ko
	insmod /run/qhca/modules/qhca_ib.ko
	until [ -e /sys/class/infiniband/qhca0 ]; do sleep 0.02; done
	rmmod qhca_ib qhca
done
