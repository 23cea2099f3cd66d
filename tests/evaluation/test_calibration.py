"""Calibration: known values, the null band, what is not said below thirty cases, plain JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from viano_assets.evaluation.calibration import (
    LEVELS,
    MIN_DECIDED,
    as_json,
    calibrate,
    calibrate_counts,
    check_claims,
    interval,
    pooled,
    stored_levels,
)
from viano_assets.evaluation.report import _calibration
from viano_assets.evaluation.snapshot import drifted, keep_snapshot, make_snapshot, snapshot_before
from viano_assets.evaluation.stored import (
    CorpusFolder,
    calibration_rows,
    quoted_snapshot,
    write_document,
)

COUNTS = st.lists(st.integers(0, 30), min_size=5, max_size=5)


def spread(good: list[int], total: list[int]) -> tuple[list[str], list[bool]]:
    levels, right = [], []
    for name, k, n in zip(LEVELS, good, total, strict=True):
        levels += [name] * n
        right += [i < k for i in range(n)]
    return levels, right


@given(COUNTS, COUNTS)
def test_rates_rise_with_the_level_and_keep_the_mean_of_what_was_pooled(a: list[int], b: list[int]) -> None:
    good, total = (
        [min(x, y) for x, y in zip(a, b, strict=True)],
        [max(x, y) for x, y in zip(a, b, strict=True)],
    )
    rates = pooled(good, total)
    assert rates == sorted(rates)
    assert all(0 < rate < 1 for rate in rates)


def test_levels_in_order_are_not_pooled_and_two_out_of_order_share_one_rate() -> None:
    assert pooled([1, 2, 3, 4, 5], [10] * 5) == pytest.approx(
        [1.5 / 11, 2.5 / 11, 3.5 / 11, 4.5 / 11, 5.5 / 11]
    )
    assert pooled([0, 0, 8, 2, 9], [10] * 5)[2:4] == pytest.approx([10.5 / 21] * 2)


def test_the_interval_is_that_of_the_beta_distribution() -> None:
    assert interval(7, 10) == pytest.approx((beta.ppf(0.025, 7.5, 3.5), beta.ppf(0.975, 7.5, 3.5)))
    assert interval(0, 5)[0] == 0.0
    assert interval(5, 5)[1] == 1.0


def test_below_thirty_cases_there_are_counts_and_no_rates() -> None:
    found = calibrate(*spread([0, 0, 3, 10, 9], [2, 2, 5, 10, 10]))
    assert found.decided == 29 == MIN_DECIDED - 1
    assert [level.n for level in found.levels] == [2, 2, 5, 10, 10]
    assert {level.rate for level in found.levels} == {None}
    assert (found.ece, found.brier, found.auroc, found.within_null_band) == (None, None, None, None)
    assert calibrate(*spread([0, 0, 3, 10, 9], [3, 2, 5, 10, 10])).ece is not None


@given(COUNTS, COUNTS)
def test_a_stored_calibration_is_strict_json(a: list[int], b: list[int]) -> None:
    """A level without cases must not become NaN: it would blank the page that shows it."""
    good, total = (
        [min(x, y) for x, y in zip(a, b, strict=True)],
        [max(x, y) for x, y in zip(a, b, strict=True)],
    )
    text = json.dumps(as_json(calibrate_counts(good, total, simulations=5)), allow_nan=False)
    assert "NaN" not in text


def test_scores_of_a_small_world_by_hand() -> None:
    """Two levels, 20 cases each, 5 and 15 right: AUROC 0.75; the left-out Brier is worked out here."""
    good, total = [0, 0, 5, 0, 15], [0, 0, 20, 0, 20]
    found = calibrate_counts(good, total)
    assert found.auroc == pytest.approx((15 * 15 + 15 * 5 / 2 + 5 * 15 / 2) / 400)
    pairs = [(1.0, 5), (0.0, 15)], [(1.0, 15), (0.0, 5)]
    brier = 0.0
    for (k, n), cases in zip(((5, 20), (15, 20)), pairs, strict=True):
        for outcome, count in cases:
            rate = (k - outcome + 0.5) / (n - 1 + 1)
            brier += count * (outcome - rate) ** 2
    assert found.brier == pytest.approx(brier / 40)
    assert found.brier_skill is not None
    assert found.brier_skill > 0
    assert found.top_lower_bound == pytest.approx(beta.ppf(0.05, 15, 6))


def test_scores_agree_with_a_case_by_case_reference() -> None:
    """AUROC over all pairs and the risk after each accepted case, ties in expectation over many orders."""
    rng = np.random.default_rng(3)
    total = [7, 9, 12, 11, 6]
    good = [1, 3, 5, 8, 6]
    levels, right = spread(good, total)
    rank = [LEVELS.index(level) for level in levels]
    won = sum(
        (a > b) + (a == b) / 2
        for a, hit_a in zip(rank, right, strict=True)
        for b, hit_b in zip(rank, right, strict=True)
        if hit_a and not hit_b
    )
    areas = []
    for _ in range(400):
        order = sorted(range(len(rank)), key=lambda i: (-rank[i], rng.random()))
        wrong = np.cumsum([not right[i] for i in order])
        areas.append(float(np.mean(wrong / np.arange(1, len(order) + 1))))
    found = calibrate(levels, right)
    assert found.auroc == pytest.approx(won / (sum(right) * (len(right) - sum(right))))
    assert found.aurc == pytest.approx(float(np.mean(areas)), abs=0.01)


def test_a_calibrated_provider_lies_in_its_band_and_an_overconfident_one_is_flagged() -> None:
    rng = np.random.default_rng(60)
    rates = np.asarray([0.1, 0.2, 0.45, 0.7, 0.9])
    claimed = dict(zip(LEVELS, map(float, rates), strict=True))
    calm = flagged = 0
    for seed in range(60):
        level = rng.choice(5, 60, p=[0.1, 0.1, 0.3, 0.3, 0.2])
        names = [LEVELS[i] for i in level]
        calm += check_claims(names, list(rng.random(60) < rates[level]), claimed, seed=seed).within_null_band
        high = rng.random(60) < np.clip(rates[level] - 0.2, 0, 1)
        flagged += check_claims(names, list(high), claimed, seed=seed).flagged
    assert calm >= 54
    assert flagged >= 54


def test_claims_need_a_case() -> None:
    with pytest.raises(ValueError, match="no case"):
        check_claims(["plausible"], [True], {"supported": 0.5})
    assert math.isfinite(check_claims(["plausible"], [True], {"plausible": 0.5}).gap_high)


@given(COUNTS, COUNTS)
def test_a_rate_lies_in_its_interval_and_a_snapshot_has_not_drifted_from_itself(
    a: list[int], b: list[int]
) -> None:
    good, total = (
        [min(x, y) for x, y in zip(a, b, strict=True)],
        [max(x, y) for x, y in zip(a, b, strict=True)],
    )
    found = calibrate_counts(good, total, simulations=5)
    for level in found.levels:
        if level.rate is not None:
            assert level.low is not None
            assert level.high is not None
            assert level.low <= level.rate <= level.high
    snapshot = {"provider": "p", "subjects": {"diagnosis": as_json(found)}}
    assert drifted(snapshot, snapshot) == []


POOLED = ([0, 0, 0, 18, 20], [0, 0, 0, 18, 27])


def test_a_pooled_level_keeps_its_own_counts_and_names_what_it_was_pooled_with() -> None:
    supported, strong = calibrate_counts(*POOLED).levels[3:]
    assert (supported.right, supported.n, supported.pooled_right, supported.pooled_n) == (18, 18, 38, 45)
    assert (supported.pooled_with, strong.pooled_with) == (("strongly_supported",), ("supported",))
    assert (supported.rate, supported.low, supported.high) == (strong.rate, strong.low, strong.high)
    assert supported.rate == pytest.approx(38.5 / 46)
    assert (supported.low, supported.high) == pytest.approx(interval(38, 45))
    alone = calibrate_counts([0, 0, 5, 0, 15], [0, 0, 20, 0, 20]).levels[2]
    assert (alone.pooled_with, alone.pooled_n) == ((), 20)


def first_form(measured: dict[str, Any]) -> dict[str, Any]:
    """Return a subject as snapshots of the first form held it: the pooled rate with the level's interval."""
    levels = []
    for item in measured["levels"]:
        old = {name: item[name] for name in ("level", "n", "right", "rate", "low", "high")}
        if item["n"] and item["rate"] is not None:
            old["low"], old["high"] = interval(item["right"], item["n"])
        levels.append(old)
    return {**measured, "levels": levels}


def snapshot_of(good: list[int], total: list[int], **named: Any) -> dict[str, Any]:
    run = {
        "corpus": "known", "corpus_sha256": "0" * 64, "run_id": "known.r0001", "provider": "offline",
        "prompts_sha256": "1" * 64, "code_version": "1", **named,
    }  # fmt: skip
    levels, right = spread(good, total)
    scores = [
        {"confirmed": True, "effective_confidence": level, "root_cause_correct": hit}
        for level, hit in zip(levels, right, strict=True)
    ]
    return make_snapshot(run, scores, {"requested": [], "effective": []}, "2026-01-01T00:00:00+00:00")


def test_snapshots_of_the_first_form_are_read_with_sound_intervals(tmp_path: Path) -> None:
    new = snapshot_of(*POOLED)
    old = {
        **new,
        "schema": "calibration-snapshot-v1",
        "subjects": {name: first_form(item) for name, item in new["subjects"].items()},
    }
    assert (
        old["subjects"]["diagnosis"]["levels"][3]["low"] > old["subjects"]["diagnosis"]["levels"][3]["rate"]
    )
    assert stored_levels(old["subjects"]["diagnosis"]) == new["subjects"]["diagnosis"]["levels"]
    assert drifted(old, new) == drifted(new, old) == drifted(old, old) == []
    assert calibration_rows(old) == calibration_rows(new)
    assert _calibration(old) == _calibration(new)
    path = keep_snapshot(tmp_path, new)
    quoted = quoted_snapshot(tmp_path, "offline")
    write_document(path, old)
    assert quoted_snapshot(tmp_path, "offline") == quoted
    assert quoted is not None
    assert quoted["levels"]["supported"]["pooled"] == {"n": 45, "right": 38, "with": ["strongly_supported"]}


def test_a_run_is_compared_with_whole_runs_of_its_own_provider_only(tmp_path: Path) -> None:
    """The newest snapshot of any provider, or of three chosen cases, once decided what had drifted."""
    folder = CorpusFolder(tmp_path, "known")
    good = {"known.r0001": 30, "known.r0002": 4, "known.r0003": 39, "known.r0004": 10, "known.r0005": 30}
    providers = dict.fromkeys(good, "offline") | {"known.r0002": "other"}
    snapshots: dict[str, dict[str, Any]] = {}
    for number, (run_id, right) in enumerate(good.items()):
        counts = ([0, 0, 0, right, 0], [0, 0, 0, 40, 0])
        snapshots[run_id] = snapshot_of(*counts, run_id=run_id, provider=providers[run_id])
        snapshots[run_id]["made_at"] = f"2026-01-0{number + 1}T00:00:00+00:00"
        keep_snapshot(tmp_path, snapshots[run_id])
        run = {name: snapshots[run_id][name] for name in _RUN} | {
            "fingerprint": "f", "started_at": "2026", "cases": {}, "unreadable": {},
            "whole": run_id != "known.r0004",
        }  # fmt: skip
        write_document(folder.run(run_id, "run.json"), run)
    last = snapshots["known.r0005"]
    before = snapshot_before(folder, last)
    assert before == snapshots["known.r0003"]
    assert drifted(before, last) == ["supported"]
    assert snapshot_before(folder, snapshots["known.r0003"]) == snapshots["known.r0001"]
    assert snapshot_before(folder, snapshots["known.r0002"]) is None
    assert drifted(snapshots["known.r0002"], last) == []
    assert drifted(snapshots["known.r0001"], last) == []


_RUN = ("run_id", "corpus", "corpus_sha256", "provider", "prompts_sha256", "code_version")
