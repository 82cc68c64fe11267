# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`make programs-table`: results of FULL=1 T=test_programs make check-interop to the page."""

import sys

from . import page

try:
    record = page.update()
except page.BadRecord as error:
    sys.exit(f"programs-table: {error}")
print(page.table(record))
