# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The one place that says what the project builds against. Read by make and
# by the shell, so every line is NAME=value with no space and no quote.

# The Debian suite the guest is made of, and QEMU's and rdma-core's source.
GUEST_SUITE=trixie
# The suite of the guest's second, newer kernel.
BACKPORTS_SUITE=trixie-backports
# Where a Debian 12 host finds the meson that QEMU asks for.
HOST_BACKPORTS_SUITE=bookworm-backports

# What those suites are expected to carry. A point release changes the last
# number only; anything else is reported rather than built in silence.
QEMU_SERIES=10.0
RDMA_CORE_SERIES=56
KERNEL_SERIES=6.12
BACKPORTS_KERNEL_SERIES=7.
PERFTEST_SERIES=25.01

# The newest releases that QEMU_SRC= and RDMA_CORE_SRC= are for, with which FULL=1 tests
# them, and the suite that has their sources.
NEWEST_SUITE=sid
NEWEST_QEMU_SERIES=10.2
NEWEST_RDMA_CORE_SERIES=65

# MB of disk that each leaves in the cache or needs on the way.
QEMU_SPACE=4000
GUEST_SPACE=9000

# The version of packages (make deb); of a git checkout it has date and commit, too.
PACKAGE_VERSION=0.1

# Bumped by hand when a recipe changes what it leaves in the cache.
QEMU_RECIPE=1
GUEST_RECIPE=3
