# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Plots, by Debian's python3-matplotlib, which `make bench` and `make study` install."""

import matplotlib

matplotlib.use("Agg")
# SVGs of the same numbers are the same file.
matplotlib.rcParams["svg.hashsalt"] = "qhca"

from matplotlib import pyplot  # noqa: E402

METADATA = {"svg": {"Date": None}, "png": {"Software": None}}


class Plots:
    """Figures, each saved as SVG and PNG; notes which were drawn."""

    def __init__(self, out):
        self.out = out
        self.drawn = []

    def draw(self, name, title, xlabel, ylabel, curves, *, hits=False, note=None, at=None,
             small=False):
        """A small plot has its legend beside it, where it hides no curve."""
        figure, axes = pyplot.subplots(figsize=(6.4, 3) if small else (7, 4.2))
        self._curves(axes, curves)
        if at:
            axes.axvline(at, color="grey", linestyle=":", label=note)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.set_ylim(0, 105 if hits else None)
        beside = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if small else {}
        axes.legend(fontsize="small", **beside)
        self._save(name, figure)

    def draw_bars(self, name, title, ylabel, groups, bars, *, hits=False):
        """Bars in groups: bars has (label, a value for each group)."""
        figure, axes = pyplot.subplots(figsize=(7, 4.2))
        width = 0.8 / len(bars)
        for index, (label, values) in enumerate(bars):
            axes.bar([n + (index - (len(bars) - 1) / 2) * width for n in range(len(groups))],
                     values, width, label=label)
        axes.set_xticks(range(len(groups)), groups)
        axes.set(title=title, ylabel=ylabel)
        # There is room for the legend above bars that are all of one height.
        axes.set_ylim(0, 135 if hits else None)
        axes.grid(True, axis="y", alpha=0.3)
        axes.legend(fontsize="small")
        self._save(name, figure)

    def draw_beside(self, name, panels, *, size=(8, 3)):
        """Panels in a row, each (title, xlabel, ylabel, curves), with logarithmic axes and
        sizes in bytes."""
        figure, row = pyplot.subplots(1, len(panels), figsize=size)
        for axes, (title, xlabel, ylabel, curves) in zip(row, panels):
            self._curves(axes, curves)
            axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
            axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(octets))
            axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axes.legend(fontsize="small")
        self._save(name, figure)

    @staticmethod
    def _curves(axes, curves):
        for index, (label, xs, ys) in enumerate(curves):
            axes.plot(xs, ys, marker="osD^vPX"[index % 7], label=label)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
        axes.grid(True, alpha=0.3)

    def _save(self, name, figure):
        figure.tight_layout()
        for kind in ("svg", "png"):
            figure.savefig(self.out / f"{name}.{kind}", dpi=120, metadata=METADATA[kind])
        pyplot.close(figure)
        self.drawn.append(name)


def octets(value, _position=None):
    """8, 4K, 1M: a power of two as a label"""
    for scale, unit in ((1 << 20, "M"), (1 << 10, "K")):
        if value >= scale:
            return f"{value / scale:g}{unit}"
    return f"{value:g}"
