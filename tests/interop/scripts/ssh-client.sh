#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints the public key by which this guest's root enters other guests by ssh, after it
# has made one if there is none. The guests' keys are not checked: they live for a test.

set -e
mkdir -p ~/.ssh
[ -e ~/.ssh/id_ed25519 ] || ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519
printf 'StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n' > ~/.ssh/config
cat ~/.ssh/id_ed25519.pub
