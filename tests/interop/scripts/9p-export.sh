#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Exports an empty folder by 9P over RDMA, on port 5640 of every address.
#
#   9p-export.sh ADDRESS
#
# diod sets its groups when root starts it, after it has opened rdma_cm. The kernel then refuses
# to let it use what it has opened, so that another user starts it.

set -e
mkdir -p /srv/9p
mountpoint -q /srv/9p || mount -t tmpfs -o uid=65534,gid=65534 tmpfs /srv/9p
ulimit -l unlimited
setpriv --reuid=65534 --regid=65534 --clear-groups /run/qhca/diod/sbin/diod --foreground \
	--no-auth --listen "$1:5641" --export /srv/9p --logdest stderr \
	> /tmp/diod.log 2>&1 < /dev/null &
for _ in $(seq 300); do
	! rdma resource show cm_id | grep -q 'state LISTEN .*0.0.0.0:5640' || exit 0
	kill -0 $! || break
	sleep 0.1
done
cat /tmp/diod.log >&2
exit 1
