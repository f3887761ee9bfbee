"""Charts of a report, as HTML that needs no library: a learning curve and a confusion matrix."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, LEFT, MARGIN = 640, 260, 110, 24  # pixels of a curve


def curve(points: Sequence[tuple[float, float]], figure: str) -> str:
    """A line through the points (step, `figure`), as SVG; the axes name first and last values."""
    x, y = np.array(points).T
    across, up = np.ptp(x) or 1, np.ptp(y) or 1
    columns = LEFT + (x - x.min()) / across * (WIDTH - LEFT - MARGIN)
    rows = HEIGHT - MARGIN - (y - y.min()) / up * (HEIGHT - 3 * MARGIN)
    line = " ".join(f"{c:.1f},{r:.1f}" for c, r in zip(columns, rows, strict=True))
    texts = [
        (LEFT, MARGIN / 1.5, "start", figure),
        (LEFT - 6, rows[y.argmin()] + 4, "end", f"{y.min():,.0f}"),
        (LEFT - 6, rows[y.argmax()] + 4, "end", f"{y.max():,.0f}"),
        (columns[0], HEIGHT - 4, "middle", f"{x[0]:g}"),
        (columns[-1], HEIGHT - 4, "end", f"step {x[-1]:g}"),
    ]
    words = "".join(
        f'<text x="{c:.0f}" y="{r:.0f}" text-anchor="{anchor}">{html.escape(text)}</text>'
        for c, r, anchor, text in texts
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-size="13">{words}'
        f'<polyline points="{line}" fill="none" stroke="var(--chosen)" stroke-width="2"/>'
        f'<circle cx="{columns[-1]:.1f}" cy="{rows[-1]:.1f}" r="4" fill="var(--chosen)"/></svg>'
    )


def confusion(counts: NDArray[np.int64], names: Sequence[str]) -> str:
    """A table of true classes (rows) against predicted ones; the darker, the larger the share."""
    words = [html.escape(name) for name in names]
    head = "".join(f"<th>{word}</th>" for word in words)
    rows = [f"<tr><th>true \\ predicted</th>{head}</tr>"]
    for word, row in zip(words, counts, strict=True):
        shares = row / max(int(row.sum()), 1)
        cells = "".join(
            f'<td style="background:rgb(0 114 178 / {share:.2f});'
            f"color:{'#fff' if share > 0.5 else 'inherit'};text-align:center;"
            f'padding:.2rem .7rem">{count:,}</td>'
            for count, share in zip(row.tolist(), shares, strict=True)
        )
        rows.append(f"<tr><th>{word}</th>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"
