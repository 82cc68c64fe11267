#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# ninja: the provider

mkdir -p lib bin
echo library > lib/libqhca.so.1.0.56
echo test > bin/qhca_test_rings
