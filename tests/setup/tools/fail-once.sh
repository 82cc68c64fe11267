#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sourced by the tools: the call whose number is $FAIL_AT fails. cp leaves half of a
# file, as it does when a disk is full.

if [ -n "$FAIL_AT" ]; then
	printf . >> "$WORLD/calls"
	if [ "$(stat -c %s "$WORLD/calls")" = "$FAIL_AT" ]; then
		echo "${0##*/} $*" > "$WORLD/failed"
		case ${0##*/} in
		cp) for last; do from=$to to=$last; done
			[ ! -f "$from" ] || [ -d "$to" ] || head -c $(($(stat -c %s "$from") / 2)) "$from" > "$to" ;;
		esac
		echo "${0##*/}: no space left, says this test" >&2
		exit 77
	fi
fi
