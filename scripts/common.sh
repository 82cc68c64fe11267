# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sourced by every script: messages, privileges, the cache folder, and a
# private apt that reads Debian suites the machine itself need not use.

# An error ends the script wherever it is, in functions and $( ), too.
set -Eeuo pipefail
shopt -s inherit_errexit

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${BUILD:-$TOP/build}
CACHE=${QHCA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/qhca}
JOBS=${JOBS:-$(nproc)}
# shellcheck disable=SC2034 # for those who source this
PYTHON=/usr/bin/python3
# An ordinary user's shell may look for neither of the former.
PATH=$PATH:/usr/sbin:/sbin:/usr/lib/apt
export LC_ALL=C.UTF-8 PATH TOP BUILD CACHE JOBS
# Of scripts that start one another the first tells of an interruption.
export QHCA_FIRST_SCRIPT=${QHCA_FIRST_SCRIPT:-$$}

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

complain()
{
	printf '%s: error: %s\n' "${SCRIPT_NAME:-qhca}" "$*" >&2
}

die()
{
	explained=1
	complain "$*"
	[ "$BASH_SUBSHELL" -eq 0 ] || exit 200
	exit 1
}

# Every end of a script passes here. An error that no die() has explained is
# reported with the command and its line.
explained='' failed='' scratch='' log_file='' log_complaint='' log_ticker=''
trap 'failed="$BASH_COMMAND (${BASH_SOURCE[0]##*/}, line $LINENO)"' ERR
trap ending EXIT
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
trap 'interrupted 129' HUP

ending()
{
	local rc=$?
	trap - ERR
	set +e
	stop_ticker
	[ -z "$scratch" ] || rm -rf "$scratch"
	if [ "$rc" -eq 0 ] || [ -n "$explained" ]; then
		return
	fi
	if [ -n "$log_file" ]; then
		tail -n 30 "$log_file" >&2
		say "the whole log is $log_file"
		complain "$log_complaint"
	elif [ "$rc" -eq 200 ]; then
		# A subshell's die() has explained it.
		exit 1
	else
		complain "${failed:-the script} ended with $rc"
	fi
}

# A signal's handler runs when the command in the foreground has ended, which
# may have caught the signal as well, and must not be taken for a failure.
interrupted()
{
	explained=1
	[ "$QHCA_FIRST_SCRIPT" != $$ ] || say "interrupted; what was complete is kept"
	exit "$1"
}

# In an `if` or before `||` the shell forgets that errors end a script, also
# for all that a function calls: a full disk then ends with "done".
strict()
{
	# shellcheck disable=SC2155 # the status is what must not count
	local ignored=$(set -e; false; echo yes)
	[ -z "$ignored" ] || die "${FUNCNAME[1]} was called in a condition, where errors are ignored"
}

# run_script NAME ARG...: another one, which explains its errors itself
run_script()
{
	strict
	explained=1
	"$TOP/scripts/$1" "${@:2}"
	explained=
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -- "$@"
	fi
}

# own_tree NAME FILE WHAT: the user's own tree in the variable NAME, as an absolute
# path; empty if there is none. FILE is one that such a tree has. A choice holds
# until the variable is given another value, or an empty one, which takes it back.
own_tree()
{
	local memory=$BUILD/trees path
	strict
	path=${!1:-}
	if [ -z "${!1+given}" ] && [ -e "$memory" ]; then
		path=$(sed -n "s,^$1=,,p" "$memory")
		[ -z "$path" ] || say "$1=$path, as before; with $1= this goes back to Debian's"
		[ -z "$path" ] || [ -e "$path/$2" ] ||
			die "$1=$path, which was given before, is no $3 any more: with $1= this goes back to Debian's"
	elif [ -n "$path" ]; then
		[ -e "$path/$2" ] || die "$1=$path is no $3"
		path=$(cd "$path" && pwd)
	fi
	if [ -n "${!1+given}" ]; then
		locked "trees-$(hash_of "$BUILD")" remember "$1" "$path"
	fi
	printf -v "$1" '%s' "$path"
}

# remember NAME VALUE: for own_tree of later runs; an empty value is forgotten
remember()
{
	mkdir -p "$BUILD"
	{
		[ ! -e "$BUILD/trees" ] || sed "/^$1=/d" "$BUILD/trees"
		[ -z "$2" ] || printf '%s=%s\n' "$1" "$2"
	} | write_if_changed "$BUILD/trees"
}

# warn_of_range WHAT VERSION FIRST LAST: of a tree whose release is of no series that was
# tried
warn_of_range()
{
	if dpkg --compare-versions "$2" lt "$3" || dpkg --compare-versions "$2" ge "$4.999"; then
		say "this is $1 $2; $3 to $4 have been tried"
	fi
}

# need_root WHAT: asked before work that would be in vain
need_root()
{
	[ "$(id -u)" -ne 0 ] || return 0
	command -v sudo > /dev/null ||
		die "root is needed to $1, and there is no sudo: run this as root, or install sudo"
	sudo -n true 2> /dev/null || sudo -v ||
		die "root is needed to $1, and sudo does not give it to $(id -un): run this as root"
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
	local file=$CACHE/lock/$1 fd
	strict
	shift
	{ mkdir -p "$CACHE/lock" && exec {fd}> "$file"; } 2> /dev/null ||
		die "cannot write $file: set QHCA_CACHE to a folder of yours"
	if ! flock -n "$fd"; then
		say "waiting for another build to release ${file##*/}"
		flock "$fd"
	fi
	# The lock must not be inherited by what the command leaves running. It
	# is released when the script ends, too.
	"$@" {fd}>&-
	exec {fd}>&-
}

# logged FILE COMPLAINT COMMAND...: keep a long command's output in a file and
# show a line of it every 15 seconds as progress. If the command fails, so does
# the script, with the output's tail and the complaint.
logged()
{
	strict
	log_file=$1 log_complaint=$2
	shift 2
	mkdir -p "$(dirname "$log_file")"
	: > "$log_file"
	(
		trap - ERR
		trap 'kill "$nap" 2> /dev/null; exit' TERM
		while kill -0 $$ 2> /dev/null; do
			sleep 15 > /dev/null 2>&1 &
			nap=$!
			wait "$nap"
			say "  ... $(tail -c 2000 "$log_file" | tr '\r' '\n' |
				awk 'NF { line = $0 } END { print substr(line, 1, 100) }')"
		done
	) < /dev/null 2>&2 &
	log_ticker=$!
	# A subshell, so that this shell's own messages go where they always do.
	("$@") > "$log_file" 2>&1 < /dev/null
	stop_ticker
	log_file=
}

stop_ticker()
{
	[ -n "$log_ticker" ] || return 0
	kill "$log_ticker" 2> /dev/null || true
	wait "$log_ticker" 2> /dev/null || true
	log_ticker=
}

# The first of the lines, all of which are read: head -n 1 would end whoever
# writes them by SIGPIPE.
first_line()
{
	awk 'NR == 1'
}

# The URI of the Debian archive that this machine's own sources name, whether
# or not their lists have been read.
debian_uri()
{
	local codename
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	apt-get --print-uris update | tr -d "'" |
		sed -n -E "s,/+dists/($codename|stable|oldstable)/InRelease .*,,p" | first_line
}

# An apt of our own: its lists and sources live in the cache, the machine's
# are not touched. $1 is the suite.
apt_setup()
{
	locked "apt-$1" read_lists "$1"
}

read_lists()
{
	local suite=$1 dir=$CACHE/apt/$1 uri fresh keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	uri=$(debian_uri)
	[ -n "$uri" ] || die "no Debian archive in this machine's apt sources: add one line for Debian's main archive"
	[ -r "$keyring" ] || die "no $keyring: apt-get install debian-archive-keyring"
	mkdir -p "$dir"/{lists/partial,archives/partial,empty}
	cat > "$dir/sources.list.new" <<-EOF
	deb [signed-by=$keyring] $uri $suite main
	deb-src [signed-by=$keyring] $uri $suite main
	EOF
	write_if_changed "$dir/apt.conf" <<-EOF
	Dir::Etc::SourceList "$dir/sources.list";
	Dir::Etc::SourceParts "$dir/empty";
	Dir::Etc::PreferencesParts "$dir/empty";
	Dir::State::Lists "$dir/lists";
	Dir::Cache "$dir";
	Dir::Cache::pkgcache "pkgcache.bin";
	Dir::Cache::srcpkgcache "srcpkgcache.bin";
	APT::Get::AllowUnauthenticated "false";
	APT::Sandbox::User "root";
	APT::Update::Error-Mode "any";
	Acquire::Languages "none";
	Acquire::Retries "3";
	EOF
	if ! cmp -s "$dir/sources.list.new" "$dir/sources.list"; then
		rm -rf "$dir/fresh" "$dir/lists"
		mkdir -p "$dir/lists/partial"
		mv "$dir/sources.list.new" "$dir/sources.list"
	fi
	rm -f "$dir/sources.list.new"
	fresh=$(find "$dir" -maxdepth 1 -name fresh -mtime -7)
	if [ -z "$fresh" ] || ! has_lists "$suite"; then
		say "reading the package lists of $suite"
		rm -f "$dir/fresh"
		if apt-get -c "$dir/apt.conf" -qq update && has_lists "$suite"; then
			touch "$dir/fresh"
		else
			has_lists "$suite" ||
				die "cannot read $suite from $uri: check the network or proxy, and try again"
			say "cannot read $suite anew from $uri; going on with the lists of an earlier day"
		fi
	fi
}

# Does the private apt have the suite's packages and sources? Without a network
# apt-get update has been seen to end well with nothing read.
has_lists()
{
	# shellcheck disable=SC2016 # apt's own variable; it tells of lists that are there
	apt_in "$1" apt-get indextargets --format '$(CREATED_BY)' |
		awk '{ has[$1] = 1 } END { exit !has["Packages"] || !has["Sources"] }'
}

# apt_in SUITE TOOL ARG...
apt_in()
{
	local suite=$1 tool=$2
	shift 2
	"$tool" -c "$CACHE/apt/$suite/apt.conf" "$@"
}

# source_version SUITE PACKAGE: the newest source version, as Debian writes it;
# nothing if there is none
source_version()
{
	{ apt_in "$1" apt-cache showsrc --only-source "$2" || true; } |
		awk '/^Version:/ { print $2 }' | sort -V | tail -n 1
}

# intact FILE HASH: does it have the hash, as apt writes one?
intact()
{
	local tool=${2%%:*}
	tool=${tool,,}sum
	[ "$("$tool" < "$1")" = "${2#*:}  -" ]
}

# fetch_orig SUITE SOURCE DIRECTORY: the upstream tarball alone, checked
# against the archive's signed index; $fetched is its path. (The .dsc is not
# needed, and mirrors are at times without it.)
fetch_orig()
{
	local suite=$1 src=$2 dir=$3 uris uri name size sum
	fetched=
	mkdir -p "$dir"
	uris=$(apt_in "$suite" apt-get -qq source --download-only --print-uris --only-source "$src")
	while read -r uri name size sum; do
		case $name in
		*.orig.tar.*.asc) continue ;;
		*.orig.tar.*) ;;
		*) continue ;;
		esac
		uri=${uri//\'/}
		if [ -e "$dir/$name" ] && ! intact "$dir/$name" "$sum"; then
			say "$name in the cache is damaged"
			rm -f "$dir/$name"
		fi
		if [ ! -e "$dir/$name" ]; then
			need_space "$dir" $((size / 1048576 + 1)) "fetching $name"
			say "fetching $name ($((size / 1048576)) MB)"
			rm -f "$dir/$name.part"
			(cd "$dir" && apt_in "$suite" apt-helper -qq download-file "$uri" "$name.part" "$sum") ||
				die "cannot fetch $name: check the network or proxy; if the archive does not serve it now, try again later or set another mirror in apt's sources"
			intact "$dir/$name.part" "$sum" || die "$name came damaged from $uri: try again"
			mv "$dir/$name.part" "$dir/$name"
		fi
		fetched=$dir/$name
	done <<< "$uris"
	[ -n "$fetched" ] || die "no source of $src in $suite"
}

# fetch_deb SUITE PACKAGE DIRECTORY: a package of apt's choice, or of a version
# as PACKAGE=VERSION, alone in the directory; $fetched is its path
fetch_deb()
{
	local suite=$1 package=$2 dir=$3
	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$dir" && apt_in "$suite" apt-get -qq download "$package") ||
		die "cannot fetch ${package%%=*} from $suite: check the network or proxy"
	fetched=$(find "$dir" -type f -name '*.deb')
	[ -n "$fetched" ] || die "${package%%=*} of $suite was not fetched"
}

# put FILE DESTINATION: a copy that is whole whenever it is there
put()
{
	mkdir -p "$(dirname "$2")"
	rm -rf "$2.new"
	cp -L "$1" "$2.new"
	mv -T "$2.new" "$2"
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
	local tmp=$1.new
	mkdir -p "$(dirname "$1")"
	cat > "$tmp"
	if cmp -s "$tmp" "$1"; then
		rm -f "$tmp"
	else
		mv -T "$tmp" "$1"
	fi
}
