"""What the figures share: colours, panels, and how seeds and the paper's figures are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# Apart from each other for all kinds of colour vision, on white and in grey.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, AMBER, BLACK, GREY = "#56B4E9", "#B8860B", "#000000", "#777777"
RC = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
DPI = 110
# How far lines are apart, as a share of the width that they cover.
APART = 0.015
Points = Mapping[float, Sequence[float]]
PAPER_MARK: dict[str, Any] = {"marker": "D", "markersize": 8, "markerfacecolor": "white"}


def panels(
    width: float, height: float, *ratios: float, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side; a legend may be put outside of them."""
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = {"width_ratios": ratios or (1,)}
    axes = figure.subplots(1, len(ratios) or 1, squeeze=False, gridspec_kw=grid, **options)
    return figure, list(axes[0])


def dots(
    axes: Axes, at: float, values: Sequence[float], colour: str, sideways: bool = False
) -> None:
    """Every seed a dot, their mean a bar across."""
    if not len(values):
        return
    shift = at + np.linspace(-0.055, 0.055, len(values)) if len(values) > 1 else np.array([at])
    seeds: dict[str, Any] = {"color": colour, "markersize": 5, "alpha": 0.5, "markeredgewidth": 0}
    bar: dict[str, Any] = {"color": colour, "linewidth": 2.2, "solid_capstyle": "butt"}
    mean, ends = [np.mean(values)] * 2, [at - 0.1, at + 0.1]
    if sideways:
        axes.plot(values, shift, "o", **seeds)
        axes.plot(mean, ends, **bar)
    else:
        axes.plot(shift, values, "o", **seeds)
        axes.plot(ends, mean, **bar)


def curves(axes: Axes, lines: Mapping[str, Points], colours: Mapping[str, str]) -> None:
    """Means joined by a line and every seed a dot, over a logarithmic axis.

    Lines are a little apart, so that none hides another; the first is drawn on top.
    """
    there = {
        label: {x: values for x, values in points.items() if len(values)}
        for label, points in lines.items()
    }
    there = {label: points for label, points in there.items() if points}
    ticks = sorted({x for points in there.values() for x in points})
    for k, (label, points) in enumerate(there.items()):
        apart = (ticks[-1] / ticks[0]) ** (APART * (k - (len(there) - 1) / 2))
        colour, above = colours[label], 3 + len(there) - k
        for x, values in points.items():
            seeds: dict[str, Any] = {"markersize": 4, "alpha": 0.35, "markeredgewidth": 0}
            axes.plot([x * apart] * len(values), values, "o", color=colour, zorder=2, **seeds)
        where, means = [x * apart for x in points], [np.mean(v) for v in points.values()]
        axes.plot(where, means, "o-", color=colour, label=label, zorder=above)
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def paper(axes: Axes, x: float, y: float, colour: str) -> None:
    """A figure that the paper states: an empty diamond."""
    axes.plot([x], [y], linestyle="", color=colour, zorder=5, **PAPER_MARK)


def key(
    figure: Figure, entries: Mapping[str, str], with_paper: bool = True, columns: int = 6
) -> None:
    """A legend above the panels: dots of these colours, and the diamond."""
    handles = [Line2D([], [], linestyle="", marker="o", color=c) for c in entries.values()]
    labels = list(entries)
    if with_paper:
        handles.append(Line2D([], [], linestyle="", color=GREY, **PAPER_MARK))
        labels.append("paper")
    figure.legend(handles, labels, loc="outside upper center", ncols=min(columns, len(labels)))


def percent_errors(*panels: Axes, which: str = "y", least_end: float = 70) -> None:
    """A scale of errors in percent on which 0, a tenth and a half all show, for all panels alike.

    To be called when everything is drawn: the scale ends beyond all of it, or later.
    """
    bounds = [getattr(axes.dataLim, f"{which}1") for axes in panels]
    end = max(least_end, *(1.1 * bound for bound in bounds))
    ticks = [t for t in (0, 0.1, 1, 10, 100 if end >= 100 else 50) if t <= end]
    for axes in panels:
        getattr(axes, f"set_{which}scale")("symlog", linthresh=0.1, linscale=0.5)
        axes.set(**{f"{which}lim": (-0.02, end)})
        axis = axes.yaxis if which == "y" else axes.xaxis
        axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_ticks([], minor=True)
        axes.grid(axis=which, color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)


def group_ticks(axes: Axes, names: Sequence[str], **font: Any) -> None:
    """Names of the groups at 0, 1, …."""
    axes.set_xticks(range(len(names)), names, **font)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.tick_params(axis="x", length=0)
