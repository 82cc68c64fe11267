# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the kselftest scripts have in common; they source it.

points=0
failed=0

# The next point: did what came before, whose status is $1, do what $2 says?
ok()
{
	points=$((points + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $points - $2"
	else
		failed=$((failed + 1))
		echo "not ok $points - $2"
	fi
}

# Wait until a command succeeds, at most so many tenths of a second.
await()
{
	local n=$1
	shift
	while ! "$@"; do
		n=$((n - 1))
		[ "$n" -gt 0 ] || return 1
		sleep 0.1
	done
}

# The last point: what the kernel has to say against all this.
content()
{
	local bad
	bad=$(dmesg | grep -E 'BUG:|WARNING:|Oops|possible .* detected|qhca .*(dead|timed out|missing|timeout)')
	[ -z "$bad" ]
	ok $? "the kernel log is clean"
	[ -z "$bad" ] || echo "$bad" | sed 's/^/# /'
}
