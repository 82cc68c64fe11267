#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Has this guest accept root by ssh with a key.
#
#   ssh-server.sh PUBLIC-KEY
#
# The agent's environment is what commands of a session get, programs of the test among
# them, and no limit of locked memory.

set -e
mkdir -p ~/.ssh /run/sshd
printf '%s\n' "$1" > ~/.ssh/authorized_keys
grep -q . /etc/ssh/ssh_host_ed25519_key 2> /dev/null || ssh-keygen -A
pgrep -x sshd > /dev/null ||
	/usr/sbin/sshd -o UsePAM=no -o StrictModes=no -o SetEnv="PATH=$PATH"
