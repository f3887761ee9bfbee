"""Figures of single layers: Table 1, and streams."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmarks import online, table1
from benchmarks.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    dots,
    group_ticks,
    key,
    panels,
    paper,
)
from benchmarks.harness import Row
from benchmarks.paper_images import PAPER_IMAGES

MODES = {"refined": BLUE, "mpmp": ORANGE, "noca": GREEN}
STREAMS = {"mpmp": ORANGE, "refined": BLUE}


def table_1(rows: list[Row]) -> Figure:
    """Ratio and seconds of each image and mode beside the paper's."""
    figure, (left, right) = panels(10, 4, 1, 1)
    for k, name in enumerate(PAPER_IMAGES):
        for shift, (mode, colour) in zip((-0.27, 0, 0.27), MODES.items(), strict=True):
            mine = [r for r in rows if r["data"] == name and r["mode"] == mode]
            if not mine:
                continue
            ratio, minutes = table1.paper(name, mode)
            dots(left, k + shift, [r["ratio"] for r in mine], colour)
            dots(right, k + shift, [r["seconds"] for r in mine], colour)
            paper(left, k + shift, ratio, colour)
            paper(right, k + shift, 60 * minutes, colour)
            truth = sum(r["ratio_true"] for r in mine) / len(mine)
            left.hlines(truth, k + shift - 0.13, k + shift + 0.13, BLACK, "dotted")
    for axes in (left, right):
        group_ticks(axes, [name.replace(" letters", "\nletters") for name in PAPER_IMAGES])
    left.set(ylabel="compression ratio, lower is better", ylim=(0, 1.1))
    right.set(ylabel="seconds", yscale="log")
    right.yaxis.set_major_formatter("{x:,.0f}")
    left.plot([], [], color=BLACK, linestyle="dotted", label="with the true parts")
    left.legend()
    key(figure, MODES)
    return figure


def streams(rows: list[Row]) -> Figure:
    """What is found in each of the paper's settings, how short its code is, and the memory."""
    figure, (found, code, memory) = panels(10.5, 3.9, 1.35, 1.35, 0.7)
    for k, name in enumerate(online.SETTINGS):
        for shift, (mode, colour) in zip((-0.17, 0.17), STREAMS.items(), strict=True):
            mine = [r for r in rows if r.get("setting") == name and r["mode"] == mode]
            dots(found, k + shift, [r["iou_min"] for r in mine], colour)
            dots(code, k + shift, [r["ratio"] / r["ratio_true"] for r in mine], colour)
    for axes in (found, code):
        group_ticks(axes, [name.replace(", ", "\n") for name in online.SETTINGS], fontsize=9)
    found.set(ylabel="IoU of the worst of five characters", ylim=(None, 1.02))
    found.axhline(0.95, color=GREY, linestyle="dotted")
    code.set(ylabel="code length of fresh images,\nby that of the true parts")
    code.axhline(1, color=BLACK, linestyle="dotted")
    peaks = {r["n_images"]: r["megabytes_peak"] for r in rows if r.get("part") == "memory"}
    memory.plot(list(peaks), list(peaks.values()), "o-", color=BLUE)
    memory.set(xscale="log", xlabel="images of the stream", ylabel="peak MB of the process")
    memory.set_ylim(0, 1.2 * max(peaks.values(), default=1))
    memory.xaxis.set_major_formatter("{x:,.0f}")
    key(figure, STREAMS, with_paper=False)
    return figure
