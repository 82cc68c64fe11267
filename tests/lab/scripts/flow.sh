#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Traffic of several kinds in one guest.
#
#   flow.sh COMMANDS
#
# COMMANDS are calls of the functions below, all of them in one string: a guest that is
# busy takes long to start a process. Of a kind of traffic NAME, flow.NAME.pid, .out,
# .code and .progress have the process, its output, its exit status once it has ended,
# and what it has done so far.

cd /tmp || exit
# See PAUSE in guest.py.
pause() { read -rt 0.05 <> /run/pause || :; }
# run NAME COMMAND...: starts it in the background, in a session that the guest's agent
# does not share
run() {
	rm -f flow.$1.*
	setsid nice -n 5 sh -c '
		f=$1 && shift
		"$@" > $f.out 2>&1 & echo $! > $f.pid
		wait $! && echo 0 > $f.code || echo $? > $f.code' sh flow.$1 "${@:2}" > /dev/null 2>&1 < /dev/null &
	until [ -s flow.$1.pid ]; do pause; done
}
# await COMMAND...: until it succeeds
await() { until "$@"; do pause; done; }
# over NAME: has it ended?
over() { [ -s flow.$1.code ]; }
# reported NAME: has it reported, or ended without?
reported() { grep -qs ^report: flow.$1.out || over $1; }
# tell SIGNAL NAME
tell() { over "$2" || kill "-$1" "$(cat "flow.$2.pid")" 2> /dev/null || :; }
# verified NAME: prints how many messages it has verified
verified() {
	local n=0 _rest
	case $1 in
	kernel) read -r n < /sys/module/qhca_test_load/parameters/rounds ;;
	*) read -r n _rest < flow.$1.progress ;;
	esac 2> /dev/null
	echo ${n:-0}
}
# resized NAME: prints how many times it has resized queues
resized() {
	local _v _s n=0
	read -r _v _s n < flow.$1.progress
	echo ${n:-0}
}
# await_or_over NAME CONDITION: until the condition holds or the traffic has ended
await_or_over() {
	until eval "$2" || over "$1"; do pause; done
}
# progress NAME:NUMBER...: until each has verified so many messages more
progress() {
	local -A least
	local w k
	for w; do least[${w%:*}]=$(($(verified "${w%:*}") + ${w#*:})); done
	for k in "${!least[@]}"; do
		until [ "$(verified "$k")" -ge "${least[$k]}" ]; do
			! over "$k" || { echo "$k has ended: $(cat "flow.$k.out")"; exit 1; }
			pause
		done
	done
}
# state NAME...: prints all that is known
state() {
	local k
	for k; do
		echo "$k: $(verified "$k") $(cat "flow.$k.out" "flow.$k.code" 2> /dev/null)"
	done
	dmesg | grep qhca_test_load: | tail -n 5
}
# resize SIGNAL NAME...: those that resize at this signal do so once
resize() {
	local -A before
	local sig=$1 k
	shift
	for k; do
		case $k in flood | kernel) continue ;; esac
		before[$k]=$(resized "$k")
		tell "$sig" "$k"
	done
	for k in "${!before[@]}"; do
		until over "$k" || [ "$(resized "$k")" -gt "${before[$k]}" ]; do pause; done
	done
}
# report NAME...: they stop sending, and report
report() {
	local k
	for k; do tell TERM "$k"; done
	for k; do await reported "$k"; done
}
# finish NAME...: they end, and their exit status and output are printed
finish() {
	local k
	for k; do tell TERM "$k"; done
	for k; do
		await over "$k"
		echo "flow $k $(cat "flow.$k.code")"
		cat "flow.$k.out"
	done
}
# abandon: kills whatever runs
abandon() {
	local p
	for p in flow.*.pid; do [ -e "${p%.pid}.code" ] || kill -KILL "$(cat "$p")"; done
	! [ -e /sys/module/qhca_test_load ] || rmmod qhca_test_load
} 2> /dev/null

eval "$1"
