#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# mmdebstrap: a tree of a few files

while [ $# -gt 3 ]; do shift; done
cp -R $WORLD/archive/tree "$2"
