"""The figure of docs/performance.md: what is active, and what a sweep takes.

Run from the root of the repository: python docs/make_performance_figure.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks import activeset
from benchmarks.harness import Benchmark

IMAGES = Path(__file__).parent / "images"
DATA = {
    "letters 200×200, 12 of 12×12": "letters",
    "noisy letters 200×200, 12 of 12×12": "letters, 3 % flips",
    "text 200×200, 32 features": "text",
}
COLOURS = ("#0072B2", "#D55E00", "#009E73")
SWEEPS = 22


def main() -> None:
    """Write the figure."""
    activeset.compile_everything()
    bench = Benchmark("figure", "")
    for name in DATA:
        activeset.one_page(bench, name, 8000)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for (name, label), colour in zip(DATA.items(), COLOURS, strict=True):
        dense, active = (
            next(r for r in bench.rows if r["data"] == name and r["engine"] == engine)
            for engine in ("dense", "active")
        )
        share = 100 * np.array(active["share_active"][:SWEEPS])
        left.semilogy(np.arange(1, len(share) + 1), np.where(share, share, np.nan), color=colour)
        left.plot([], [], color=colour, label=label)
        for row, style in ((active, "-"), (dense, ":")):
            seconds = row["seconds_per_step"][:SWEEPS]
            right.semilogy(np.arange(1, len(seconds) + 1), seconds, style, color=colour)
    left.set(xlabel="sweep", ylabel="% of placements active", ylim=(0.01, 1), xlim=(0, SWEEPS))
    left.legend(frameon=False)
    right.set(xlabel="sweep", ylabel="seconds", xlim=(0, SWEEPS))
    right.plot([], [], "k-", label="active set")
    right.plot([], [], "k:", label="dense engine")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xticks(range(0, SWEEPS + 1, 5))
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "active-set.png", dpi=110)


if __name__ == "__main__":
    main()
