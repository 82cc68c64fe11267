#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints the numbers of RDMA objects of each device, and those that belong to processes.

rdma resource show | cut -d ' ' -f 2-
for kind in pd cq qp mr srq ctx; do
	rdma resource show $kind
done | grep -w comm | grep -v '\[ib_core\]' || :
