# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Writes an empty qcow2 image over another image (docs/interop/qcow2.txt of QEMU).

QEMU's own way, snapshot=on, makes a file that no other QEMU can open, and qemu-img is
no part of the QEMU that the tests build.
"""

import os
import pathlib
import struct

CLUSTER_BITS = 16
CLUSTER = 1 << CLUSTER_BITS
BACKING_FORMAT = 0xE2792ACA         # a header extension
# Where things are, in clusters. The table of level 1 is last.
HEADER, REFCOUNT_TABLE, REFCOUNTS, LEVEL1 = range(4)


def overlay(path, base, base_format="raw"):
    """Writes the image; what it does not have is read from the base."""
    size = os.path.getsize(base)
    # An entry of level 1 has a cluster of level 2, whose entries of 8 bytes have one each.
    entries = -(-size // (CLUSTER * CLUSTER // 8))
    assert 8 * entries <= CLUSTER, f"{base} is too large"
    name, kind = str(base).encode(), base_format.encode()
    extensions = struct.pack(">II", BACKING_FORMAT, len(kind)) + kind.ljust(-(-len(kind) // 8) * 8, b"\0")
    extensions += bytes(8)          # the end of the extensions
    head = struct.pack(
        ">4sIQIIQIIQQIIQQQQII", b"QFI\xfb", 3, 104 + len(extensions), len(name), CLUSTER_BITS, size,
        0, entries, LEVEL1 * CLUSTER, REFCOUNT_TABLE * CLUSTER, 1, 0, 0, 0, 0, 0,
        4, 104)                     # reference counts of 16 bits, length of the header
    image = bytearray((LEVEL1 + 1) * CLUSTER)
    image[:104 + len(extensions) + len(name)] = head + extensions + name
    struct.pack_into(">Q", image, REFCOUNT_TABLE * CLUSTER, REFCOUNTS * CLUSTER)
    struct.pack_into(">4H", image, REFCOUNTS * CLUSTER, 1, 1, 1, 1)
    pathlib.Path(path).write_bytes(image)
