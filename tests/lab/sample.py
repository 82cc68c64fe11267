# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Samples that tests choose without FULL=1: the same in each run, or those of QHCA_SEED."""

import os

SEED = int(os.environ.get("QHCA_SEED", 1))
