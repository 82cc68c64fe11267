# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What tests draw at random, without FULL=1: the day's, or that of QHCA_SEED."""

import datetime
import os

SEED = int(os.environ.get("QHCA_SEED") or datetime.datetime.now(datetime.timezone.utc).toordinal())
