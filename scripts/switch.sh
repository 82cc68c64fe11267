#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds qhca-switch, the switch that joins guests, in build/switch.

SCRIPT_NAME=switch
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

run_script setup.sh
logged "$BUILD/log/switch.log" "the switch does not build; see above" \
	make --no-print-directory -C "$TOP/fabric" -j "$JOBS" "O=$BUILD/switch" ${WERROR:+WERROR=1}
if grep -q 'warning:' "$BUILD/log/switch.log"; then
	grep -A 4 'warning:' "$BUILD/log/switch.log" >&2 || true
fi
say "done: ${BUILD#"$TOP/"}/switch/qhca-switch"
