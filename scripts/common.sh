# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sourced by every script: messages, privileges, the cache folder, and a
# private apt that reads Debian suites the machine itself need not use.

set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${BUILD:-$TOP/build}
CACHE=${QHCA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/qhca}
JOBS=${JOBS:-$(nproc)}
PYTHON=/usr/bin/python3
export LC_ALL=C.UTF-8 TOP BUILD CACHE JOBS

# Git and make of a caller must not steer the builds below.
unset MAKEFLAGS MFLAGS MAKELEVEL GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

while IFS='=' read -r name value; do
	case $name in
	'' | '#'*) ;;
	*) printf -v "$name" '%s' "$value" ;;
	esac
done < "$TOP/versions.mk"

started=$SECONDS

say()
{
	printf '%s [%3ds] %s\n' "${SCRIPT_NAME:-qhca}" $((SECONDS - started)) "$*" >&2
}

die()
{
	printf '%s: error: %s\n' "${SCRIPT_NAME:-qhca}" "$*" >&2
	exit 1
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo > /dev/null; then
		sudo -- "$@"
	else
		die "need root for: $* (run as root, or install sudo)"
	fi
}

# need_space DIRECTORY MEGABYTES WHAT
need_space()
{
	local have
	mkdir -p "$1"
	have=$(df --output=avail -m "$1" | tail -n 1)
	[ "$have" -ge "$2" ] ||
		die "$3 needs $2 MB in $1, which has $have MB: free some, or set QHCA_CACHE to a larger disk"
}

# hash_of TEXT...: a short key for cache folders
hash_of()
{
	printf '%s\n' "$@" | sha256sum | cut -c 1-12
}

# locked NAME COMMAND...: one writer at a time for one part of the cache
locked()
{
	local file=$CACHE/lock/$1 fd rc=0
	shift
	mkdir -p "$CACHE/lock"
	exec {fd}> "$file"
	if ! flock -n "$fd"; then
		say "waiting for another build to release ${file##*/}"
		flock "$fd"
	fi
	# The lock must not be inherited by what the command leaves running.
	"$@" {fd}>&- || rc=$?
	exec {fd}>&-
	return "$rc"
}

# logged FILE COMMAND...: keep a long command's output in a file, show a line
# of it every 15 seconds as progress, and its tail when the command fails.
logged()
{
	local log=$1 ticker rc=0
	shift
	mkdir -p "$(dirname "$log")"
	: > "$log"
	(
		trap 'kill "$nap"; exit' TERM
		while :; do
			sleep 15 &
			nap=$!
			wait "$nap"
			say "  ... $(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c 1-100)"
		done
	) < /dev/null 2>&2 &
	ticker=$!
	"$@" > "$log" 2>&1 < /dev/null || rc=$?
	kill "$ticker" 2> /dev/null || true
	wait "$ticker" 2> /dev/null || true
	if [ "$rc" -ne 0 ]; then
		tail -n 30 "$log" >&2
		say "failed: $* (whole log: $log)"
	fi
	return "$rc"
}

# The URI of the Debian archive that this machine's own sources name.
debian_uri()
{
	local codename
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v c="$codename" '$3 == "main" && ($2 == c || $2 == "stable" || $2 == "oldstable") {
			sub(/\/$/, "", $1); print $1; exit }'
}

# An apt of our own: its lists and sources live in the cache, the machine's
# are not touched. $1 is the suite.
apt_setup()
{
	local dir=$CACHE/apt/$1 uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	uri=$(debian_uri)
	[ -n "$uri" ] || die "no Debian archive in this machine's apt sources: add one line for Debian's main archive"
	[ -r "$keyring" ] || die "no $keyring: apt-get install debian-archive-keyring"
	mkdir -p "$dir"/{lists/partial,archives/partial,empty}
	cat > "$dir/sources.list.new" <<-EOF
	deb [signed-by=$keyring] $uri $1 main
	deb-src [signed-by=$keyring] $uri $1 main
	EOF
	cat > "$dir/apt.conf" <<-EOF
	Dir::Etc::SourceList "$dir/sources.list";
	Dir::Etc::SourceParts "$dir/empty";
	Dir::Etc::PreferencesParts "$dir/empty";
	Dir::State::Lists "$dir/lists";
	Dir::Cache "$dir";
	Dir::Cache::pkgcache "pkgcache.bin";
	Dir::Cache::srcpkgcache "srcpkgcache.bin";
	APT::Get::AllowUnauthenticated "false";
	APT::Sandbox::User "root";
	Acquire::Languages "none";
	Acquire::Retries "3";
	EOF
	if [ ! -e "$dir/fresh" ] || ! cmp -s "$dir/sources.list.new" "$dir/sources.list" ||
		[ -n "$(find "$dir/fresh" -mtime +6)" ]; then
		mv "$dir/sources.list.new" "$dir/sources.list"
		say "reading the package lists of $1"
		apt-get -c "$dir/apt.conf" -qq update ||
			die "cannot read $1 from the archive in this machine's apt sources: check the network or proxy"
		touch "$dir/fresh"
	fi
	rm -f "$dir/sources.list.new"
}

# apt_in SUITE TOOL ARG...
apt_in()
{
	local suite=$1 tool=$2
	shift 2
	"$tool" -c "$CACHE/apt/$suite/apt.conf" "$@"
}

# source_version SUITE PACKAGE: the newest source version, as Debian writes it
source_version()
{
	apt_in "$1" apt-cache showsrc --only-source "$2" |
		awk '/^Version:/ { print $2 }' | sort -V | tail -n 1
}

# fetch_orig SUITE SOURCE DIRECTORY: the upstream tarball alone, checked
# against the archive's signed index. (The .dsc is not needed, and mirrors
# are at times without it.)
fetch_orig()
{
	local suite=$1 src=$2 dir=$3 uri name size sum got=
	mkdir -p "$dir"
	while read -r uri name size sum; do
		case $name in
		*.orig.tar.*.asc) continue ;;
		*.orig.tar.*) ;;
		*) continue ;;
		esac
		uri=${uri//\'/}
		if [ ! -e "$dir/$name" ]; then
			say "fetching $name ($((size / 1048576)) MB)"
			(cd "$dir" && apt_in "$suite" /usr/lib/apt/apt-helper -qq download-file "$uri" "$name.part" "$sum") ||
				die "cannot fetch $name: the archive does not serve it now; try again later or set another mirror in apt's sources"
			mv "$dir/$name.part" "$dir/$name"
		fi
		got=$name
	done < <(apt_in "$suite" apt-get source --download-only --print-uris --only-source "$src" 2> /dev/null)
	[ -n "$got" ] || die "no source of $src in $suite"
	printf '%s\n' "$dir/$got"
}

# sync_tree FROM/ TO/ [RSYNC-OPTION...]: copy by content, so that files that
# did not change keep their time and nothing is rebuilt for their sake
sync_tree()
{
	local from=$1 to=$2
	shift 2
	mkdir -p "$to"
	rsync -rlp --checksum --delete "$@" "$from" "$to"
}

# write_if_changed FILE: stdin to FILE unless it says so already
write_if_changed()
{
	local tmp=$1.new.$$
	mkdir -p "$(dirname "$1")"
	cat > "$tmp"
	if cmp -s "$tmp" "$1"; then
		rm -f "$tmp"
	else
		mv "$tmp" "$1"
	fi
}
