"""The plots of a corpus run say what they show: counts, titles, and that there is nothing to show."""

from __future__ import annotations

import random
from typing import Any

import pytest
from matplotlib.figure import Figure

from viano_assets.evaluation import plots as module
from viano_assets.evaluation.calibration import LEVELS, as_json, calibrate
from viano_assets.evaluation.plots import Bar, RiskPoint, plots, risk_coverage, unit_bars

Row = dict[str, Any]


def rows(count: int, *, seed: int = 1, confirm: float = 0.6) -> list[Row]:
    rng = random.Random(seed)
    found: list[Row] = []
    for _ in range(count):
        confirmed = rng.random() < confirm
        level = rng.choice(LEVELS[3:] if confirmed else LEVELS[:3])
        found.append(
            {
                "verdict": "defect" if rng.random() < 0.8 else "wrong_premise", "confirmed": confirmed,
                "effective_confidence": level, "root_cause_correct": rng.random() < 0.8,
                "units": rng.randrange(12, 140), "file_any_1": rng.random() < 0.7, "row_any_1": None,
            }
        )  # fmt: skip
    return found


def snapshot(own: list[Row]) -> dict[str, Any]:
    pairs = [(row["effective_confidence"], row["root_cause_correct"]) for row in own]
    confirmed = [pair for pair, row in zip(pairs, own, strict=True) if row["confirmed"]]
    subjects = {"diagnosis": confirmed, "requested": pairs * 3, "effective": pairs * 3}
    return {
        "subjects": {
            name: as_json(calibrate([p[0] for p in found], [p[1] for p in found], simulations=5))
            for name, found in subjects.items()
        }
    }


def texts(figure: Figure) -> list[str]:
    """Return what a figure says, after checking that no two labels below or above the marks overlap."""
    axes = figure.axes[0]
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in axes.texts if text.get_text()]
    ticks = [
        (tick.get_text(), tick.get_window_extent()) for tick in axes.get_xticklabels() if tick.get_text()
    ]
    labels = [*boxes, *ticks]
    for number, (one, box) in enumerate(labels):
        for other, second in labels[number + 1 :]:
            assert not box.overlaps(second), (one, other)
    legend = axes.get_legend()
    told = [text.get_text() for text in legend.get_texts()] if legend else []
    return [axes.get_title(), *[text for text, _ in labels], *told]


@pytest.mark.parametrize("count", [1, 5, 60, 300])
def test_labels_do_not_overlap_and_every_plot_has_a_title_and_counts(count: int) -> None:
    own = rows(count)
    for figure in (
        module._reliability(snapshot(own)),
        module._risk(risk_coverage(own)),
        module._units(unit_bars(own)),
    ):
        said = texts(figure)
        assert said[0]
        assert any(" of " in text or text.startswith("no ") for text in said[1:])


def test_every_level_is_counted() -> None:
    said = texts(module._reliability(snapshot(rows(300))))
    assert sum(" of " in text for text in said) == 2 + 5 + 5


@pytest.mark.parametrize("own", [[], rows(12, confirm=0.0)])
def test_a_plot_without_anything_says_so(own: list[Row]) -> None:
    assert risk_coverage(own) == []
    assert "no defect was confirmed" in texts(module._risk([]))
    if not own:
        assert "no defect was investigated" in texts(module._units(unit_bars(own)))
        assert "nothing was assessed" in texts(module._reliability(snapshot(own)))


def test_bars_hold_every_defect_and_points_count_from_the_top() -> None:
    own = rows(300)
    defects = [row for row in own if row["verdict"] == "defect"]
    bars = unit_bars(own)
    assert len(bars) <= module.MAX_BARS
    assert sum(bar.n for bar in bars) == len(defects)
    assert sum(bar.right for bar in bars) == sum(row["file_any_1"] for row in defects)
    few: list[Row] = [
        {
            "verdict": "defect", "confirmed": level is not None, "effective_confidence": level,
            "root_cause_correct": right, "units": units, "file_any_1": None, "row_any_1": right,
        }
        for level, right, units in (
            ("strongly_supported", True, 5), ("supported", False, 5), ("supported", True, 9), (None, False, 9)
        )
    ]  # fmt: skip
    assert unit_bars(few) == [Bar(5, 5, 1, 2), Bar(9, 9, 1, 2)]
    assert risk_coverage(few) == [RiskPoint("strongly_supported", 1, 0, 4), RiskPoint("supported", 3, 1, 4)]


def test_the_same_run_gives_the_same_bytes() -> None:
    own = rows(40)
    one, two = plots(own, snapshot(own)), plots(own, snapshot(own))
    assert one == two
    assert set(one) == {"reliability", "risk-coverage", "units"}
    assert all(picture.startswith(b"\x89PNG") for picture in one.values())
