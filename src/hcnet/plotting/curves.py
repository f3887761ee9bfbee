"""Learning curves: the objective after each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from PIL import Image, ImageDraw, ImageFont

from hcnet.engine.driver import JOINT
from hcnet.plotting.arguments import curve_of, picture_size
from hcnet.plotting.drawing import BLACK, FRAME, GAP, PALETTE, TEXT, blank

SIZE = (640, 300)
LEAST = (200, 100)  # the words need that much
TICKS = 5


class Measured(Protocol):
    """A step of a run's history, as the estimators' `history_` holds them."""

    @property
    def iteration(self) -> int: ...  # noqa: D102

    @property
    def objective(self) -> float: ...  # noqa: D102


def show_curve(history: Sequence[Measured], size: tuple[int, int] = SIZE) -> Image.Image:
    """The objective over the steps of a run, with its name."""
    points = curve_of(history)
    width, height = picture_size(size, LEAST)
    sheet = blank(width, height)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(TEXT)
    if not points:
        draw.text((width / 2, height / 2), "no steps", fill=BLACK, font=font, anchor="mm")
        return sheet
    x_ticks = nice_ticks(min(x for x, _ in points), max(x for x, _ in points))
    y_ticks = nice_ticks(min(y for _, y in points), max(y for _, y in points))
    left = GAP + max(int(font.getlength(f"{tick:,g}")) for tick in y_ticks) + GAP
    top, right, bottom = 3 * GAP, width - 3 * GAP, height - 5 * GAP

    def across(x: float) -> float:
        return left + (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]) * (right - left)

    def down(y: float) -> float:
        return bottom - (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]) * (bottom - top)

    grey = (FRAME,) * 3
    for y in y_ticks:
        draw.line([(left, down(y)), (right, down(y))], fill=grey)
        draw.text((left - GAP, down(y)), f"{y:,g}", fill=BLACK, font=font, anchor="rm")
    for x in x_ticks:
        draw.text((across(x), bottom + 4), f"{x:,g}", fill=BLACK, font=font, anchor="ma")
    name = getattr(history[-1], "figure", JOINT)
    draw.text((left, 2), name, fill=BLACK, font=font, anchor="la")
    draw.text((right, height - 2), "step", fill=BLACK, font=font, anchor="rd")
    line = [(across(x), down(y)) for x, y in points]
    if len(line) > 1:
        draw.line(line, fill=PALETTE[0], width=2, joint="curve")
    last = line[-1]
    draw.ellipse([last[0] - 3, last[1] - 3, last[0] + 3, last[1] + 3], fill=PALETTE[0])
    return sheet


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about five of them."""
    if high - low <= max(max(abs(low), abs(high)) * 1e-12, 1e-300):  # the same, but for rounding
        high = low + max(abs(low) * 1e-3, 1.0)
    rough = (high - low) / (TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= rough * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [k * step for k in range(first, last + 1)]
