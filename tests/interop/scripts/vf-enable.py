# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sets or clears VF Enable of a physical function, as its reset does.

    vf-enable.py DEVICE VALUE

The kernel learns nothing of it. DEVICE is a folder of sysfs, VALUE is 0 or 1.
"""

import os
import struct
import sys

CAPABILITIES, SRIOV, CONTROL, VF_ENABLE = 0x100, 0x10, 8, 1

device, value = sys.argv[1:]
config = os.open(device + "/config", os.O_RDWR)
at = CAPABILITIES
while True:
    header, = struct.unpack("<I", os.pread(config, 4, at))
    if header & 0xffff == SRIOV:
        break
    at = header >> 20
control, = struct.unpack("<H", os.pread(config, 2, at + CONTROL))
control = control & ~VF_ENABLE | int(value)
os.pwrite(config, struct.pack("<H", control), at + CONTROL)
