# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make help lists the targets. Nothing here needs a configure step: what is
# missing is installed or built by the scripts, once, into a cache folder.

SHELL := /bin/bash
PYTHON := /usr/bin/python3
export BUILD ?= $(CURDIR)/build

# One's own trees, in place of Debian's. A variable that is not given stays unset, so
# that the scripts take what was given before; an empty one takes that back.
TREES := QEMU_SRC KDIR LINUX RDMA_CORE_SRC RDMA_UNIT_TEST_SRC BLKTESTS_SRC
# CC is make's own if it is not given.
export BUILD $(foreach v,$(TREES) CC,$(if $(filter-out undefined default,$(origin $(v))),$(v)))
# More choices, see `make help`.
export QHCA_CACHE QHCA_ACCEL QHCA_KERNEL QEMU_SANITIZE JOBS LANES W C WERROR FULL

RUN := PYTHONPATH=$(CURDIR)/tests PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m
LAB := $(RUN) lab
AREAS := setup abi unit sim fuzz qtest guest interop
# The tests take the kernel from the environment, as some of them choose another one.
CHECK := $(if $(KERNEL),QHCA_KERNEL='$(KERNEL)') scripts/check.sh

# The parts share tools and two processors: each uses all of them by itself.
.NOTPARALLEL:
.PHONY: all ready help setup linux qemu switch guest modules modules-backports modules-all provider \
	debug-kernel programs suites programs-table deb run shell bench path instructions study check $(AREAS:%=check-%) clean

all: ready linux qemu switch modules-all provider programs

# What cannot be had is said before minutes of compiling.
ready:
	@scripts/setup.sh all

help:
	@echo 'Everything:'
	@echo '  make run       build all, boot two guests on one RoCEv2 link, run pingpong and perftest'
	@echo '  make check     build all and pass every test'
	@echo '  make shell     an interactive guest with qhca0 up; N=2 for two joined ones'
	@echo '                 N=3 to N=16, of run and shell: so many guests at a switch'
	@echo '  make bench     qhca beside Soft-RoCE in the same guests; writes build/bench.{json,svg}'
	@echo '  make path      the way of a message from doorbell to memory, with times of each step'
	@echo '  make instructions   those of the engine for a packet, beside recorded ones'
	@echo '  make study     what the caches do: working sets against geometries, costs; build/study'
	@echo 'Parts:'
	@echo '  make setup     install the Debian packages this needs'
	@echo '  make qemu      QEMU with the qhca device'
	@echo '  make switch    the switch that joins guests, qhca-switch'
	@echo '  make linux     with LINUX=DIR: your kernel and its modules for the guest, and ours'
	@echo '  make guest     the guest: Debian tree, kernels, boot image'
	@echo '  make modules   qhca.ko, qhca_ib.ko, qhca_vfio.ko for the guest'"'"'s kernel'
	@echo '  make modules-backports   the same for its newer kernel'
	@echo '  make debug-kernel  a kernel with KASAN, lockdep and kmemleak, and modules for it'
	@echo '  make provider  libqhca, in rdma-core'"'"'s tree'
	@echo '  make programs  the test programs that run in guests'
	@echo '  make suites    fabtests and diod, for the tests of other people'"'"'s programs; with'
	@echo '                 RDMA_UNIT_TEST_SRC=DIR, BLKTESTS_SRC=DIR those trees'"'"' as well'
	@echo '  make deb       Debian packages: modules by DKMS, provider, QEMU; build/deb'
	@echo '  make $(AREAS:%=check-%)'
	@echo '                 the tests of one kind; T=WORDS picks by name (pytest -k)'
	@echo '  make programs-table   the table of Documentation/programs.rst, from the results'
	@echo '                   of FULL=1 T=test_programs make check-interop'
	@echo '  make clean     remove build/ (the cache folder stays)'
	@echo 'Choices:'
	@echo '  LINUX=DIR QEMU_SRC=DIR RDMA_CORE_SRC=DIR KDIR=DIR   trees of your own, in this and'
	@echo '                   later runs of make; LINUX= goes back to Debian'"'"'s, as make clean does;'
	@echo '                   guests boot the kernel of LINUX, which you have built'
	@echo '  QHCA_CACHE=DIR   where downloads and large builds go (~/.cache/qhca)'
	@echo '  QHCA_ACCEL=tcg   or kvm; else KVM if a trial boot works'
	@echo '  QEMU_SANITIZE=1  QEMU with AddressSanitizer and UBSan'
	@echo '  COMPARE=FILE     for study: an earlier study.json, whose counts must be the same'
	@echo '  RECORD=1 for instructions: record them in tests/bench/packets.json'
	@echo '  VFS=4 for bench: with so many virtual functions, up and idle'
	@echo '  AGAINST=COMMIT for bench: that commit and this tree by turns, in one run; with VFS=4'
	@echo '                   this tree with so many idle virtual functions as well'
	@echo '  ROUNDS=3 for bench: how often each case is measured'
	@echo '  CASES=REGEX for bench: the cases whose test and size match, and nothing else'
	@echo '  CASES=migration for bench: what a move of a guest costs, with few and many objects'
	@echo '  CASES=tcp for bench: TCP over qhca beside virtio-net, and beside RDMA'
	@echo '  LANES=1 for check: the tests one after the other, and not in two lanes'
	@echo '  LINK=shm for run, shell, bench, path and tests: join devices in shared memory; LINK=both'
	@echo '                   for bench: over a socket and in shared memory, beside each other'
	@echo '  KERNEL=backports for run, shell, bench, path, study and check: the newer kernel;'
	@echo '                   KERNEL=debug: that of make debug-kernel'

setup:
	@scripts/setup.sh

linux:
	@scripts/linux.sh

qemu:
	@scripts/qemu.sh

switch:
	@scripts/switch.sh

guest:
	@scripts/guest.sh

modules:
	@scripts/modules.sh

modules-backports:
	@scripts/modules.sh backports

debug-kernel:
	@scripts/kernel.sh

modules-all:
	@scripts/modules.sh all

provider:
	@scripts/provider.sh

programs:
	@scripts/programs.sh

suites:
	@scripts/suites.sh

# What FULL=1 T=test_programs make check-interop found, into Documentation.
programs-table:
	@$(RUN) suites

deb: ready
	@scripts/deb.sh

run: all
	@$(LAB) run $(if $(N),--guests $(N)) $(if $(KERNEL),--kernel $(KERNEL))

shell: all
	@$(LAB) shell --guests $(or $(N),1) $(if $(KERNEL),--kernel $(KERNEL))

bench: all
	@scripts/setup.sh plots
	@against=$(if $(AGAINST),$$(scripts/against.sh '$(AGAINST)' $(KERNEL))) && \
		$(LAB) bench $(if $(KERNEL),--kernel $(KERNEL)) $(if $(VFS),--functions $(VFS)) \
			$(if $(AGAINST),--against "$$against") $(if $(ROUNDS),--rounds $(ROUNDS)) \
			$(if $(value CASES),--cases '$(value CASES)')

path: all
	@$(LAB) path $(if $(KERNEL),--kernel $(KERNEL))

instructions: setup
	@$(RUN) bench $(if $(RECORD),--record)

study: all
	@scripts/setup.sh plots
	@$(RUN) study --out $(BUILD)/study $(if $(KERNEL),--kernel $(KERNEL)) \
		$(if $(COMPARE),--compare $(COMPARE))

# The scripts keep going past a failed part, so that the rest is tested too,
# and end with the one line that counts.
check:
	@$(CHECK) $(AREAS)

$(AREAS:%=check-%): check-%:
	@$(CHECK) $*

clean:
	rm -rf $(BUILD)
