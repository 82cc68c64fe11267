#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ends what iser-initiator.sh began.
#
#   iser-logout.sh NAME

iscsiadm -m node -T "$1" --logout
iscsiadm -m node -T "$1" -o delete
pkill -x iscsid
