#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ends what 9p-export.sh began. diod waits for one more event before it ends by itself.

pkill -KILL -x diod
while pgrep -x diod > /dev/null; do sleep 0.1; done
umount /srv/9p
