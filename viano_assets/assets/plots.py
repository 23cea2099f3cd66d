"""Plots for the UI, as PNG bytes.

One is drawn per case, hundreds in a ranged run, so they are drawn line by line: a plotting library takes a
hundred times as long.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from viano_assets.phases.investigation.summary import BalancePoint

SIZE = (640, 280)
LEFT, TOP, RIGHT, BOTTOM = 52, 30, 626, 242
"""Edges of the plotting area in pixels."""

COLOURS = ("#1f77b4", "#d1660a", "#2a8a2a", "#c4302f", "#7d58ad", "#7a4b3f", "#b8529a", "#555555")
INK, GRID, PAPER = "#222222", "#dddddd", "#ffffff"
TICKS = 5
"""Most intervals between two labelled ticks of an axis."""


class _Axis(NamedTuple):
    """Maps 0..`last` to the pixels `start`..`end`, with a tick every `step`."""

    last: int
    step: int
    start: int
    end: int

    @classmethod
    def over(cls, largest: int, start: int, end: int) -> _Axis:
        steps = (nice * 10**power for power in count() for nice in (1, 2, 5))
        step = next(step for step in steps if step * TICKS >= largest)
        return cls(max(step, -(-largest // step) * step), step, start, end)

    def at(self, value: int) -> float:
        return self.start + (self.end - self.start) * value / self.last

    def ticks(self) -> range:
        return range(0, self.last + 1, self.step)


def balance_plot(points: Sequence[BalancePoint]) -> bytes:
    """Plot the balance of each hypothesis in investigation units over the dispatches, as steps."""
    from PIL import Image, ImageDraw  # noqa: PLC0415  # loads only when something is drawn

    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    across = _Axis.over(max((p.dispatch for p in points), default=0), LEFT, RIGHT)
    up = _Axis.over(max((p.balance for p in points), default=0), BOTTOM, TOP)
    for tick in across.ticks():
        draw.line([(across.at(tick), TOP), (across.at(tick), BOTTOM)], fill=GRID)
        draw.text((across.at(tick), BOTTOM + 6), str(tick), fill=INK, anchor="ma")
    for tick in up.ticks():
        draw.line([(LEFT, up.at(tick)), (RIGHT, up.at(tick))], fill=GRID)
        draw.text((LEFT - 6, up.at(tick)), str(tick), fill=INK, anchor="rm")
    draw.text(((LEFT + RIGHT) / 2, BOTTOM + 22), "dispatch", fill=INK, anchor="ma")
    draw.text((6, 8), "units left", fill=INK)
    for number, name in enumerate(sorted({p.hypothesis_id for p in points})):
        colour = COLOURS[number % len(COLOURS)]
        own = [p for p in points if p.hypothesis_id == name]
        line: list[tuple[float, float]] = []
        for point in own:
            if line:
                line.append((across.at(point.dispatch), line[-1][1]))
            line.append((across.at(point.dispatch), up.at(point.balance)))
        draw.line(line, fill=colour, width=2)
        place = 110 + 64 * number
        draw.line([(place, 14), (place + 22, 14)], fill=colour, width=3)
        draw.text((place + 28, 14), name, fill=INK, anchor="lm")
    buffer = io.BytesIO()
    image.quantize(32).save(buffer, format="PNG", optimize=False)
    return buffer.getvalue()
