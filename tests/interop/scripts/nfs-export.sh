#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Exports an empty folder by NFS 4.2 over RDMA, and over TCP as the server wants it.
#
#   nfs-export.sh ADDRESS

set -e
modprobe -a nfsd rpcrdma
mkdir -p /srv/nfs /run/rpc_pipefs /var/lib/nfs/v4recovery /var/lib/nfs/nfsdcld
mountpoint -q /srv/nfs || mount -t tmpfs tmpfs /srv/nfs
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs sunrpc /run/rpc_pipefs
# Newer kernels keep what they know of clients by this program only.
nfsdcld
exportfs -o rw,no_root_squash,insecure,fsid=0 '*:/srv/nfs'
rpc.mountd --no-nfs-version 3 --no-udp
rpc.nfsd --no-nfs-version 3 --host "$1" 4
echo rdma 20049 > /proc/fs/nfsd/portlist
# There are no clients of an earlier life to wait for.  Newer kernels refuse to end what has ended.
grep -q Y /proc/fs/nfsd/v4_end_grace || echo Y > /proc/fs/nfsd/v4_end_grace
