#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds what the named areas of tests need and runs them all under pytest.
#
#   scripts/check.sh AREA...     setup abi unit sim fuzz qtest guest interop
#
# QHCA_KERNEL=NAME has guests boot another kernel wherever a test asks for no particular
# one: backports, debug (of scripts/kernel.sh), linux (of LINUX), or a release. make
# passes KERNEL= on by this name.
# T=EXPRESSION picks tests by name (pytest -k); PYTEST_ARGS adds options; LANES=1 runs one
# test after the other where two lanes of tests would run beside each other.
# A part that does not build is one failed test; the others still run.
# The last line is "N passed, N failed", with ", N skipped" if there are any.

SCRIPT_NAME=check
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

areas=("$@")
[ ${#areas[@]} -gt 0 ] || areas=(setup abi unit sim fuzz qtest guest interop)
results=$BUILD/check
LANES_MEMORY=12000
rm -rf "$results"
mkdir -p "$results"

# part NAME COMMAND...: a failure is noted for the tests' count
part()
{
	local name=$1
	shift
	say "building $name"
	# A program, no function: see strict.
	if "$@" >&2; then
		echo passed > "$results/build-$name"
	else
		echo failed > "$results/build-$name"
		say "$name does not build; its tests will fail"
	fi
}

wants()
{
	local a w
	for w; do
		for a in "${areas[@]}"; do
			[ "$a" != "$w" ] || return 0
		done
	done
	return 1
}

# finish: what explains itself has failed, and there is nothing to test
finish()
{
	explained=1
	echo "0 passed, 1 failed"
	exit 1
}

case ${QHCA_KERNEL:-default} in
default | backports | debug | linux | [0-9]*) ;;
*)
	complain "the guest has no kernel $QHCA_KERNEL: KERNEL= takes backports, debug, linux or a release"
	finish
	;;
esac
needs=
if wants abi guest interop; then
	needs=all
fi
"$TOP/scripts/setup.sh" $needs || finish

tests=()
for a in "${areas[@]}"; do
	dir=$TOP/tests/$a
	[ -d "$dir" ] || continue
	tests+=("$dir")
	case $a in
	unit | sim | fuzz)
		[ ! -f "$dir/Makefile" ] || part "$a" make --no-print-directory -C "$dir" -j "$JOBS" all \
			BUILD="$BUILD/tests/$a" ENGINE="$TOP/qemu-hca/core" ABI="$TOP/drivers/include"
		;;
	esac
done
if wants qtest guest interop; then
	targets=(qemu-system-x86_64)
	if wants qtest; then
		for f in "$TOP"/tests/qtest/*-test.c; do
			[ ! -e "$f" ] || targets+=("tests/qtest/$(basename "$f" .c)")
		done
	fi
	part qemu "$TOP/scripts/qemu.sh" "${targets[@]}"
fi
if wants interop; then
	part switch "$TOP/scripts/switch.sh"
fi
if wants abi guest interop; then
	part linux "$TOP/scripts/linux.sh"
	part guest "$TOP/scripts/guest.sh"
	part modules "$TOP/scripts/modules.sh" all
	[ "${QHCA_KERNEL:-}" != debug ] || part debug-kernel "$TOP/scripts/kernel.sh"
	part provider "$TOP/scripts/provider.sh"
	part programs "$TOP/scripts/programs.sh"
fi
if wants interop; then
	part suites "$TOP/scripts/suites.sh"
fi
[ ${#tests[@]} -gt 0 ] || { say "no tests in: ${areas[*]}"; finish; }

# The slowest tests are named, since the time of all is limited.
args=(-c "$TOP/tests/pytest.ini" --rootdir="$TOP/tests" -p no:cacheprovider --durations=30
	--durations-min=15)
[ -z "${T:-}" ] || args+=(-k "$T")
# shellcheck disable=SC2206
args+=(${PYTEST_ARGS:-})
cd "$TOP/tests"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$TOP/tests" QHCA_CHECK_RESULTS="$results"
rc=0
lane=()
others=()
if wants interop && [ ${#areas[@]} -gt 1 ]; then
	# Either lane then takes about as long.
	for dir in "${tests[@]}"; do
		case ${dir##*/} in
		abi | unit | interop) lane+=("$dir") ;;
		setup)
			lane+=("$dir/test_linux.py")
			for file in "$dir"/test_*.py; do
				[ "$file" = "$dir/test_linux.py" ] || others+=("$file")
			done
			;;
		*) others+=("$dir") ;;
		esac
	done
fi
# Each lane has up to three pairs of guests up at a time.  Options of the caller's are for
# one pytest: two would write the same files, and end apart.
memory=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
if [ ${#lane[@]} -eq 0 ] || [ -n "${PYTEST_ARGS:-}" ] || [ "${LANES:-2}" -lt 2 ] || [ "$(nproc)" -lt 2 ] ||
	[ "$memory" -lt "$LANES_MEMORY" ]; then
	"$PYTHON" -m pytest "${args[@]}" "$TOP/tests/test_build.py" "${tests[@]}" < /dev/null || rc=$?
else
	if [ "${FULL:-0}" = 0 ]; then
		# Beside guests the fuzz targets have two thirds of the processors' time.
		export FUZZ_SECONDS=${FUZZ_SECONDS:-12} LINK_SECONDS=${LINK_SECONDS:-90} \
			IMAGE_SECONDS=${IMAGE_SECONDS:-90} GUEST_SECONDS=${GUEST_SECONDS:-45}
	fi
	"$PYTHON" -m lab.lanes "${args[@]}" -- "$TOP/tests/test_build.py" "${others[@]}" -- "${lane[@]}" \
		< /dev/null || rc=$?
fi
# The tests have reported what failed.
explained=1
# 5 is pytest's "nothing collected"; conftest.py has printed the line.
exit "$rc"
