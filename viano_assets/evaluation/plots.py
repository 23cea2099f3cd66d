"""The plots of a corpus run: reliability with intervals, risk over coverage, budget versus correctness."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from viano_assets.evaluation.calibration import LEVELS, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUBJECTS = ("diagnosis", "requested", "effective")
"""Subjects of a snapshot in the order they are drawn."""

MAX_BARS = 8
"""Bars of the plot of units; more different values share a bar."""

Rows = Sequence[Mapping[str, Any]]


class RiskPoint(NamedTuple):
    """Confirmed defects of a level and all above it, those of them that are wrong, and all defects."""

    level: str
    confirmed: int
    wrong: int
    defects: int


class Bar(NamedTuple):
    """Defects whose investigation took `low` to `high` units: first place right, and all."""

    low: int
    high: int
    right: int
    n: int


def plots(own: Rows, snapshot: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the plots as PNG by name.

    Args:
        own: Viano's rows of the run.
        snapshot: the calibration of the run.
    """
    return {
        "reliability": _png(_reliability(snapshot)),
        "risk-coverage": _png(_risk(risk_coverage(own))),
        "units": _png(_units(unit_bars(own))),
    }


def risk_coverage(own: Rows) -> list[RiskPoint]:
    """Return coverage and risk as confirmed defects are accepted from the strongest level down."""
    defects = [row for row in own if row["verdict"] == "defect"]
    points: list[RiskPoint] = []
    for cut in reversed(range(len(LEVELS))):
        accepted = [row for row in defects if row["confirmed"] and _rank(row) >= cut]
        if len(accepted) > (points[-1].confirmed if points else 0):
            wrong = sum(not row["root_cause_correct"] for row in accepted)
            points.append(RiskPoint(LEVELS[cut], len(accepted), wrong, len(defects)))
    return points


def unit_bars(own: Rows) -> list[Bar]:
    """Return how often the first place was right, by the units the investigation of a defect took."""
    judged = [
        (int(row["units"]), bool(row["file_any_1"] or row["row_any_1"]))
        for row in own
        if row.get("units") is not None and row["verdict"] == "defect"
    ]
    values = sorted({units for units, _ in judged})
    if len(values) <= MAX_BARS:
        edges = [(value, value) for value in values]
    else:
        width = -(-(values[-1] - values[0] + 1) // MAX_BARS)
        starts = range(values[0], values[-1] + 1, width)
        edges = [(start, start + width - 1) for start in starts]
    bars = []
    for low, high in edges:
        hits = [right for units, right in judged if low <= units <= high]
        bars.append(Bar(low, high, sum(hits), len(hits)))
    return bars


def _rank(row: Mapping[str, Any]) -> int:
    level = row["effective_confidence"]
    return LEVELS.index(level) if level in LEVELS else -1


def _figure(width: float, title: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import, needed only here

    figure = Figure(figsize=(width, 4), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return figure, axes


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _said(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=10, color="0.4")


def _reliability(snapshot: Mapping[str, Any]) -> Figure:
    """Draw the raw share right per level and subject; the counts stand in rows below the levels."""
    figure, axes = _figure(7, "Share right per confidence level, with 95 % intervals")
    empty = True
    for row, subject in enumerate(SUBJECTS):
        color, mark = f"C{row}", "os^"[row]
        below = -0.2 - 0.07 * row
        axes.text(-0.01, below, subject, transform=axes.transAxes, ha="right", fontsize=7, color=color)
        for item in snapshot["subjects"].get(subject, {"levels": []})["levels"]:
            if not item["n"]:
                continue
            empty = False
            place = LEVELS.index(item["level"])
            low, high = interval(item["right"], item["n"])
            share = item["right"] / item["n"]
            axes.errorbar(
                [place + (row - 1) * 0.22],
                [share],
                yerr=[[share - low], [high - share]],
                fmt=mark,
                color=color,
                markersize=5,
                capsize=2,
            )
            axes.text(
                place,
                below,
                f"{item['right']} of {item['n']}",
                transform=axes.get_xaxis_transform(),
                ha="center",
                fontsize=7,
                color=color,
            )
    if empty:
        _said(axes, "nothing was assessed")
    axes.set_xticks(range(len(LEVELS)), [name.replace("_", "\n") for name in LEVELS])
    axes.set(xlim=(-0.5, len(LEVELS) - 0.5), ylim=(-0.03, 1.03), ylabel="share right")
    axes.grid(axis="y", alpha=0.3)
    return figure


def _risk(points: Sequence[RiskPoint]) -> Figure:
    figure, axes = _figure(5.4, "Risk over coverage, strongest level first")
    axes.set(
        xlabel="share of defects confirmed (coverage)",
        ylabel="share of them wrong (risk)",
        xlim=(-0.02, 1.02),
        ylim=(-0.03, 1.03),
    )
    axes.grid(alpha=0.3)
    if not points:
        _said(axes, "no defect was confirmed")
        return figure
    coverage = [point.confirmed / point.defects for point in points]
    risk = [point.wrong / point.confirmed for point in points]
    axes.plot(coverage, risk, color="0.6", linewidth=1)
    for number, (at, share, point) in enumerate(zip(coverage, risk, points, strict=True)):
        level = point.level.replace("_", " ") + ("" if number == 0 else " and above")
        label = f"{level}: {point.wrong} of {point.confirmed} wrong"
        axes.plot([at], [share], "os^Dv"[number], color=f"C{number}", label=label, clip_on=False)
    axes.legend(fontsize=7, title=f"of {points[0].defects} defects", title_fontsize=7)
    return figure


def _units(bars: Sequence[Bar]) -> Figure:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  # slow to import, needed only here

    figure, axes = _figure(5.4, "First place right, by units of the investigation")
    axes.set(xlabel="investigation units", ylabel="defects")
    if not bars:
        _said(axes, "no defect was investigated")
        axes.set(xticks=[], yticks=[])
        return figure
    places = range(len(bars))
    axes.bar(places, [bar.right for bar in bars], 0.7, label="first place right", color="C0")
    wrong = [bar.n - bar.right for bar in bars]
    axes.bar(places, wrong, 0.7, [bar.right for bar in bars], label="wrong or none", color="C1")
    top = max(bar.n for bar in bars)
    for place, bar in zip(places, bars, strict=True):
        if bar.n:
            axes.text(place, bar.n + top * 0.02, f"{bar.right} of {bar.n}", ha="center", fontsize=7)
    names = [f"{bar.low}" if bar.low == bar.high else f"{bar.low}–{bar.high}" for bar in bars]
    axes.set_xticks(places, names, fontsize=7)
    axes.set(xlim=(-0.6, max(len(bars) - 0.4, 2.4)), ylim=(0, top * 1.25))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=7, loc="upper right", ncols=2, frameon=False)
    return figure
