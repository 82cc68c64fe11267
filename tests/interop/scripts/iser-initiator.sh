#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Logs in to a target by iSER, writes its disk, and verifies what it has.
#
#   iser-initiator.sh NAME ADDRESS

set -e
modprobe -a ib_iser scsi_transport_iscsi sd_mod
[ -s /etc/iscsi/initiatorname.iscsi ] && ! grep -q GenerateName /etc/iscsi/initiatorname.iscsi ||
	echo "InitiatorName=iqn.1993-08.org.debian:01:qhca" > /etc/iscsi/initiatorname.iscsi
pgrep -x iscsid > /dev/null || iscsid
iscsiadm -m node -T "$1" -p "$2:3260" -o new -I iser > /dev/null
iscsiadm -m node -T "$1" -p "$2:3260" --login
for _ in $(seq 600); do
	disk=$(basename "$(echo /sys/class/iscsi_session/session*/device/target*/*/block/*)")
	[ ! -b "/dev/$disk" ] || break
	sleep 0.05
done
fio --name=test "--filename=/dev/$disk" --direct=1 --ioengine=libaio --iodepth=8 \
	--rw=randwrite --bsrange=4k-128k --verify=crc32c --verify_fatal=1 --size=8M
