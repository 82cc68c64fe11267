# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`make instructions`: instructions for a packet, beside recorded ones; records them."""

import argparse
import os
import sys

from lab import paths
from lab.__main__ import print_instructions
from lab.ending import ended

from . import packets


def main():
    parser = argparse.ArgumentParser(prog="instructions", description=__doc__)
    parser.add_argument("--record", action="store_true",
                        help="write the values into the file that later ones are compared with")
    options = parser.parse_args()
    rows = packets.measure(packets.build())
    print_instructions(rows)
    if options.record:
        packets.record(rows)
        print(f"recorded in {os.path.relpath(packets.RECORDED, paths.TOP)}")
    return 0


if __name__ == "__main__":
    sys.exit(ended("instructions", main))
