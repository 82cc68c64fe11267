#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ends what nfs-export.sh began.

rpc.nfsd 0
exportfs -ua
pkill -x rpc.mountd
pkill -x nfsdcld
umount /srv/nfs
