"""Plots for the UI, as PNG bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence

from viano_assets.phases.investigation.summary import BalancePoint


def balance_plot(points: Sequence[BalancePoint]) -> bytes:
    """Plot the balance of each hypothesis in investigation units over the dispatches."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import, needed only here

    figure = Figure(figsize=(6.4, 2.8), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    for name in sorted({point.hypothesis_id for point in points}):
        own = [point for point in points if point.hypothesis_id == name]
        axes.step([p.dispatch for p in own], [p.balance for p in own], where="post", label=name)
    axes.set_xlabel("dispatch")
    axes.set_ylabel("units left")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if points:
        axes.legend(ncols=5, fontsize="small")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
