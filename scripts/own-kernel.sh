# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What a kernel tree of the user's was made with, and refers to.

# has_compiler TREE: was the tree configured with this machine's gcc? "gcc-14 (Debian
# 14.2.0-19) 14.2.0" is the same as "gcc (Debian 14.2.0-19) 14.2.0".
has_compiler()
{
	local theirs='' ours=''
	# Callers ask in conditions, where a command that fails ends nothing by itself.
	if [ -e "$1/.config" ]; then
		theirs=$(sed -n 's,^CONFIG_CC_VERSION_TEXT="\(.*\)",\1,p' "$1/.config") ||
			die "cannot read $1/.config"
	fi
	if command -v gcc > /dev/null; then
		ours=$(gcc --version | first_line) || die "cannot tell the version of gcc"
	fi
	[ -z "$theirs" ] || [ "${theirs#* }" = "${ours#* }" ]
}

# The folders of this machine that a kernel build tree refers to.
folders_of()
{
	local f
	# Trees of headers have links to scripts and tools.
	for f in "$1" "$1/source" "$1/scripts" "$1/tools" /usr/lib/linux-kbuild-*; do
		[ ! -d "$f" ] || realpath "$f"
	done
	# Trees of headers include each other by these paths.
	case $(realpath "$1") in
	/usr/src/*) echo /usr/src ;;
	esac
}

# guest_make TREE FOLDERS DIRECTORY ARG...: make in a kernel tree with the guest's compiler
# and tools, which see more folders of this machine, a line each; DIRECTORY is of the guest
guest_make()
{
	local tree=$1 seen=$2 dir=$3
	shift 3
	case $tree in
	"$GUEST_TREE"/*) tree=${tree#"$GUEST_TREE"} ;;
	*)
		seen=$({ printf '%s\n' "$seen" && folders_of "$tree"; } | sed '/^$/d' | sort -u)
		tree=$(realpath "$tree")
		;;
	esac
	in_tree_seeing "$seen" "$dir" make -C "$tree" "$@"
}
