#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs a target of libFuzzer, and prints TAP: a point for the inputs of its corpus, if
# it has any, and one for those that libFuzzer makes.
#
#   run.sh PROGRAM CORPUS SECONDS SEED
#
# An input that fails is kept in findings/ beside PROGRAM, and the command that runs it
# again is printed. New inputs that reach more of the engine are not kept.

program=$1 corpus=$2 seconds=$3 seed=$4
name=${program##*/}
findings=${program%/*}/findings
options=(-artifact_prefix="$findings/$name-" -timeout=40)
points=0 failed=0

work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
mkdir -p "$findings" "$work/corpus" || exit

# point NAME PROGRAM...
point()
{
	local what=$1 input
	shift
	points=$((points + 1))
	if "$@" > "$work/log" 2>&1; then
		grep -E '(DONE|^stat::)' "$work/log" | sed 's/^/# /'
		echo "ok $points - $name: $what"
		return
	fi
	failed=1
	tail -n 60 "$work/log" | sed 's/^/# /'
	input=$(sed -n 's/.*Test unit written to //p' "$work/log")
	[ -z "$input" ] || echo "# the input again: $program $input"
	echo "not ok $points - $name: $what"
}

inputs=()
for file in "$corpus"/*; do
	[ ! -f "$file" ] || inputs+=("$file")
done
if [ ${#inputs[@]} -gt 0 ]; then
	point "inputs of the corpus" "$program" "${options[@]}" "${inputs[@]}"
	cp "${inputs[@]}" "$work/corpus" || exit
fi
point "inputs that libFuzzer makes" "$program" "${options[@]}" -seed="$seed" \
	-max_total_time="$seconds" -max_len=4096 -len_control=0 -print_final_stats=1 "$work/corpus"
echo "1..$points"
exit $failed
