#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs as root in the tree of libvirt.sh.
#
#   libvirt-domain.sh DOMAIN

set -e
# There is neither systemd nor a security module in here, and no control group of our own.
cat > /etc/libvirt/qemu.conf <<-EOF
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
EOF
ip link set lo up
ip link add br0 type bridge
ip link set br0 mtu 4200 up
qemu-img create -q -f qcow2 /var/lib/libvirt/images/a.qcow2 1G
libvirtd -d
tries=0
until virsh -q -c qemu:///system version > /tmp/version 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 60 ] || { cat /tmp/version; exit 1; }
	sleep 1
done
cat /tmp/version
virsh -q -c qemu:///system create "$1"
name=$(virsh -q -c qemu:///system list --name)
echo "state: $(virsh -q -c qemu:///system domstate "$name")"
virsh -q -c qemu:///system qemu-monitor-command "$name" --hmp 'info qhca'
echo "pt-cache-sets: $(virsh -q -c qemu:///system qemu-monitor-command "$name" --hmp \
	'qom-get /machine/peripheral/net0 pt-cache-sets')"
ip -o link show master br0
virsh -q -c qemu:///system destroy "$name"
