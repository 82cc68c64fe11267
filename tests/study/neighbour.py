# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A function beside one that thrashes the caches: tests/sim/neighbour.c, without a guest."""

import json
import os
import subprocess

from lab import paths

SITUATIONS = {"alone": "alone", "beside": "beside a neighbour",
              "masked": "beside a neighbour, with masks"}


def build(folder):
    """Compiles the simulator's program into a folder; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    top = paths.TOP
    subprocess.run(["make", "--no-print-directory", "-s", "-C", top / "tests" / "sim",
                    f"-j{os.cpu_count()}", f"BUILD={folder}", f"ENGINE={top}/qemu-hca/core",
                    f"ABI={top}/drivers/include", folder / "neighbour"],
                   check=True, stdout=subprocess.DEVNULL)
    return folder / "neighbour"


def parse(text):
    """([row], [sentence]): measurements, and where the counts are not the model's."""
    rows, found = [], []
    for line in text.splitlines():
        if line.startswith("# {"):
            row = json.loads(line[2:])
            row["hit_rate"] = 1 - row["misses"] / (row["accesses"] * row["lines"])
            rows.append(row)
        elif line.startswith("not ok"):
            found.append(f"the simulator has {line}")
    return rows, found


def measure(folder):
    done = subprocess.run([build(folder)], check=False, stdout=subprocess.PIPE, text=True)
    rows, found = parse(done.stdout)
    if done.returncode and not found:
        raise RuntimeError(f"neighbour ends with {done.returncode}")
    return rows, found
