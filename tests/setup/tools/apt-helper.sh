#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# apt-helper download-file: a copy, which $WORLD_DOWNLOAD has cut short or lost

case $WORLD_DOWNLOAD in
cut) head -c 1000 $WORLD/archive/${5##*/} > $6; exit 0 ;;
lost) head -c 1000 $WORLD/archive/${5##*/} > $6; exit 100 ;;
esac
cp $WORLD/archive/${5##*/} $6
