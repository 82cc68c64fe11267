# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Where the guest's parts lie in the cache. The key covers everything the
# recipe depends on: its own text and the pins.

guest_packages=$(sed -n '/^packages=(/,/^)/p' "$TOP/scripts/guest.sh")
GUEST_DIR=$(hash_of "$GUEST_RECIPE" "$GUEST_SUITE" "$BACKPORTS_SUITE" "$KERNEL_SERIES" \
	"$BACKPORTS_KERNEL_SERIES" "$RDMA_CORE_SERIES" "$guest_packages")
GUEST_DIR=$CACHE/guest-$GUEST_SUITE-$GUEST_DIR
GUEST_TREE=$GUEST_DIR/tree
GUEST_IMAGE=$GUEST_DIR/image.ext4
VNG_DIR=$GUEST_DIR/virtme-ng
SUITES_DIR=$GUEST_DIR/suites
DIOD_DIR=$GUEST_DIR/diod
export GUEST_DIR GUEST_TREE GUEST_IMAGE VNG_DIR SUITES_DIR DIOD_DIR

# guest_kernels: the releases the tree has, oldest first
guest_kernels()
{
	local k
	for k in "$GUEST_DIR"/vmlinuz-*; do
		printf '%s\n' "${k##*/vmlinuz-}"
	done | sort -V
}

# the_kernel SERIES: the newest release of a series that the tree has
the_kernel()
{
	local k
	k=$(guest_kernels | awk -v s="$1" 'index($0, s) == 1 { k = $0 } END { print k }')
	[ -n "$k" ] || die "the guest has no kernel $1: remove $GUEST_DIR and try again"
	printf '%s\n' "$k"
}

# in_tree DIRECTORY COMMAND...: run in the guest tree, as the caller. /proc is
# there where mounting is allowed; newer kernels' objtool wants it.
in_tree()
{
	in_tree_seeing "" "$@"
}

# in_tree_seeing FOLDERS DIRECTORY COMMAND...: the same, where folders of this
# machine, a line each, have the paths that they have here
in_tree_seeing()
{
	local seen=$1
	shift
	# shellcheck disable=SC2016
	as_root unshare --mount --propagation private sh -c '
		tree=$1 user=$2 seen=$3 dir=$4
		shift 4
		mount -t proc proc "$tree/proc" || echo "no /proc in the guest tree: mounting is not allowed here" >&2
		printf "%s" "$seen" | while read -r f || [ -n "$f" ]; do
			mkdir -p "$tree$f" && mount --rbind "$f" "$tree$f" || exit 1
		done || { echo "the guest tree cannot be shown the folders of the kernel tree" >&2; exit 1; }
		exec chroot --userspec="$user" "$tree" \
			env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
			sh -c '\''cd "$1" && shift && exec "$@"'\'' sh "$dir" "$@"' \
		sh "$GUEST_TREE" "$(id -u):$(id -g)" "$seen" "$@"
}
