#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs a shell script in the tree of plain-tree.sh, as the caller.
#
#   in-tree.sh TREE DIRECTORY SCRIPT

SCRIPT_NAME=in-tree
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../../scripts/common.sh"
# shellcheck disable=SC2034 # in_tree reads it
. "$TOP/scripts/guest-paths.sh"
GUEST_TREE=$1
in_tree "$2" bash -ec "$3"
