# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The study's results as tables, plots, and a page that explains them."""

import csv
import json

from .page import page
from .plots import draw_all


def write_tables(rows, out):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with open(out / "study.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    (out / "study.json").write_text(json.dumps(rows, indent=1) + "\n")


def write(rows, out, where):
    out.mkdir(parents=True, exist_ok=True)
    write_tables(rows, out)
    drawn = draw_all(rows, out)
    (out / "study.md").write_text(page(rows, where))
    return drawn
