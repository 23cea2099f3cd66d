"""Calibrated confidence: what a level has been worth on known bugs, with its uncertainty.

Per level a beta-binomial posterior with a Jeffreys prior (Brown, Cai and DasGupta 2001), made monotone
across the ordered levels by pooling adjacent violators (Ayer et al. 1955). Reliability is summed up by the
expected calibration error beside the band that a perfectly calibrated predictor of the same size would
show (simulation), the Brier score and its skill against the base rate, AUROC, and the area under the
risk-coverage curve (Geifman and El-Yaniv 2017). Fewer than `MIN_DECIDED` cases give counts, no rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

LEVELS = ("weakened", "unassessed", "plausible", "supported", "strongly_supported")
"""Confidence levels, weakest first."""

MIN_DECIDED = 30
"""Decided cases below which no percentage is given."""

PRIOR = 0.5
"""Jeffreys prior: both parameters of the beta distribution."""

Floats = NDArray[np.float64]


class LevelRate(NamedTuple):
    """One level: its own decided and right cases, posterior rate, 95 % interval (None below the minimum).

    Rate and interval are those of the block the level was pooled into: `pooled_right` of `pooled_n` cases,
    shared with the levels `pooled_with` (empty when the level stands alone), so that the rate always lies in
    its interval.
    """

    level: str
    n: int
    right: int
    rate: float | None
    low: float | None
    high: float | None
    pooled_right: int | None = None
    pooled_n: int | None = None
    pooled_with: tuple[str, ...] = ()


class Block(NamedTuple):
    """Neighbouring levels that share one rate: cases right, cases decided, how many levels."""

    right: int
    n: int
    levels: int

    @property
    def mean(self) -> float:
        """The posterior mean of the rate."""
        return (self.right + PRIOR) / (self.n + 2 * PRIOR)


class Calibration(NamedTuple):
    """The whole picture of one stratum; every figure is None where it cannot be given.

    `null_low`, `null_high`: the 95 % band of the ECE under perfect calibration. `top_lower_bound`: the
    one-sided 95 % lower bound of the rate of `strongly_supported` and `supported` together.
    """

    decided: int
    right: int
    levels: tuple[LevelRate, ...]
    ece: float | None
    null_low: float | None
    null_high: float | None
    brier: float | None
    brier_skill: float | None
    auroc: float | None
    aurc: float | None
    top_lower_bound: float | None

    @property
    def within_null_band(self) -> bool | None:
        """True when the ECE is no larger than a calibrated predictor's of this size could be."""
        return None if self.ece is None or self.null_high is None else self.ece <= self.null_high


def blocks(right: Sequence[int], n: Sequence[int]) -> list[Block]:
    """Return the ordered levels pooled until their posterior means rise; an empty level moves no other."""
    found: list[Block] = []
    for k, total in zip(right, n, strict=True):
        found.append(Block(k, total, 1))
        while len(found) > 1 and found[-2].mean > found[-1].mean:
            last = found.pop()
            found[-1] = Block(*(a + b for a, b in zip(found[-1], last, strict=True)))
    return found


def pooled(right: Sequence[int], n: Sequence[int]) -> list[float]:
    """Return the monotone posterior means of ordered levels; empty levels take their neighbours' value."""
    return [block.mean for block in blocks(right, n) for _ in range(block.levels)]


def level_rates(good: Sequence[int], total: Sequence[int]) -> tuple[LevelRate, ...]:
    """Return what each level of `LEVELS` is worth; counts only below `MIN_DECIDED` cases."""
    if sum(total) < MIN_DECIDED:
        return tuple(LevelRate(name, total[i], good[i], None, None, None) for i, name in enumerate(LEVELS))
    rows: list[LevelRate] = []
    for block in blocks(good, total):
        places = range(len(rows), len(rows) + block.levels)
        for i in places:
            if total[i] == 0:
                rows.append(LevelRate(LEVELS[i], 0, 0, None, None, None))
                continue
            others = tuple(LEVELS[j] for j in places if j != i and total[j])
            span = interval(block.right, block.n)
            rows.append(
                LevelRate(LEVELS[i], total[i], good[i], block.mean, *span, block.right, block.n, others)
            )
    return tuple(rows)


def interval(right: int, n: int, mass: float = 0.95) -> tuple[float, float]:
    """Return the equal-tailed posterior interval of a rate."""
    tail = (1 - mass) / 2
    a, b = right + PRIOR, n - right + PRIOR
    low = 0.0 if right == 0 else float(beta.ppf(tail, a, b))
    high = 1.0 if right == n else float(beta.ppf(1 - tail, a, b))
    return low, high


def counts(levels: Sequence[str], right: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Return per level of `LEVELS` how many were right and how many were decided."""
    index = {name: number for number, name in enumerate(LEVELS)}
    codes = np.fromiter((index[name] for name in levels), dtype=np.int64, count=len(levels))
    hits = np.asarray(right, dtype=np.float64)
    total = np.bincount(codes, minlength=len(LEVELS))
    good = np.bincount(codes, weights=hits, minlength=len(LEVELS))
    return [int(value) for value in good], [int(value) for value in total]


def calibrate(
    levels: Sequence[str], right: Sequence[bool], *, seed: int = 0, simulations: int = 400
) -> Calibration:
    """Measure the calibration of decided cases.

    Args:
        levels: effective level of each decided case.
        right: whether each was right.
        seed: of the null band's simulation.
        simulations: how many calibrated predictors are drawn for it.

    The rates that score a case are fitted without it (leave one out), since the same cases fit and score.
    """
    return calibrate_counts(*counts(levels, right), seed=seed, simulations=simulations)


def calibrate_counts(
    good: Sequence[int], total: Sequence[int], *, seed: int = 0, simulations: int = 400
) -> Calibration:
    """Measure the calibration from the counts per level of `LEVELS`; as `calibrate`."""
    n, k = sum(total), sum(good)
    rows = level_rates(good, total)
    if n < MIN_DECIDED:
        return Calibration(n, k, rows, *([None] * 8))
    rates = pooled(good, total)
    left_out = _leave_one_out(good, total)
    ece = _ece(good, total, left_out)
    low, high = _null_band(total, rates, seed, simulations)
    brier, reference = _brier(good, total, left_out)
    top_right, top_n = good[3] + good[4], total[3] + total[4]
    bound = float(beta.ppf(0.05, top_right, top_n - top_right + 1)) if top_right else 0.0
    return Calibration(
        decided=n,
        right=k,
        levels=rows,
        ece=ece,
        null_low=low,
        null_high=high,
        brier=brier,
        brier_skill=None if reference == 0 else 1 - brier / reference,
        auroc=_auroc(good, total),
        aurc=_aurc(good, total),
        top_lower_bound=bound if top_n else None,
    )


class Claims(NamedTuple):
    """Claimed rates held against outcomes.

    `ece` and its 97.5 % bound `null_high` under the claims; `gap`, claimed minus observed share right, and
    its one-sided 95 % bound `gap_high` under the claims.
    """

    n: int
    ece: float
    null_high: float
    gap: float
    gap_high: float

    @property
    def within_null_band(self) -> bool:
        """True when a provider whose claims hold could show this calibration error."""
        return self.ece <= self.null_high

    @property
    def flagged(self) -> bool:
        """True when the claims are too high: a provider whose claims hold rarely falls so far short."""
        return self.gap > self.gap_high


def check_claims(
    levels: Sequence[str],
    right: Sequence[bool],
    claimed: Mapping[str, float],
    *,
    seed: int = 0,
    simulations: int = 2_000,
) -> Claims:
    """Hold the rates of a snapshot against cases it was not fitted on.

    Args:
        levels: level of each decided case; one without a claim is left out.
        right: whether each was right.
        claimed: rate per level.
        seed: of the simulation.
        simulations: how many providers whose claims hold are drawn.

    Raises:
        ValueError: no case has a claimed level.
    """
    pairs = [(level, hit) for level, hit in zip(levels, right, strict=True) if level in claimed]
    good, total = counts([level for level, _ in pairs], [hit for _, hit in pairs])
    n = sum(total)
    if n == 0:
        raise ValueError("no case has a claimed level")
    size = np.asarray(total)
    rates = np.asarray([claimed.get(level, 0.0) for level in LEVELS])
    random = np.random.default_rng(seed)
    draws = np.stack([random.binomial(t, p, simulations) for t, p in zip(size, rates, strict=True)])
    gaps = (size * rates)[:, None] - draws
    own = size * rates - np.asarray(good)
    return Claims(
        n=n,
        ece=float(np.abs(own).sum() / n),
        null_high=float(np.quantile(np.abs(gaps).sum(axis=0) / n, 0.975)),
        gap=float(own.sum() / n),
        gap_high=float(np.quantile(gaps.sum(axis=0) / n, 0.95)),
    )


def _leave_one_out(good: Sequence[int], total: Sequence[int]) -> list[tuple[float, float]]:
    """Return per level the rate for a right and for a wrong case, each fitted without that case."""
    found = []
    for i in range(len(LEVELS)):
        pair = []
        for was_right in (1, 0):
            fewer_good, fewer = list(good), list(total)
            if total[i] and (good[i] if was_right else total[i] - good[i]):
                fewer_good[i] -= was_right
                fewer[i] -= 1
            pair.append(pooled(fewer_good, fewer)[i])
        found.append((pair[0], pair[1]))
    return found


def _ece(good: Sequence[int], total: Sequence[int], rates: Sequence[tuple[float, float]]) -> float:
    n = sum(total)
    gap = 0.0
    for k, count, (right_rate, wrong_rate) in zip(good, total, rates, strict=True):
        if count:
            forecast = (k * right_rate + (count - k) * wrong_rate) / count
            gap += count / n * abs(forecast - k / count)
    return gap


def _null_band(
    total: Sequence[int], rates: Sequence[float], seed: int, simulations: int
) -> tuple[float, float]:
    random = np.random.default_rng(seed)
    draws = np.stack(
        [random.binomial(count, rate, simulations) for count, rate in zip(total, rates, strict=True)]
    )
    values = [
        _ece(list(map(int, draws[:, j])), total, _leave_one_out(list(map(int, draws[:, j])), total))
        for j in range(simulations)
    ]
    low, high = np.quantile(np.asarray(values), [0.025, 0.975])
    return float(low), float(high)


def _brier(
    good: Sequence[int], total: Sequence[int], rates: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Return the Brier score of the left-out rates and that of the left-out base rate."""
    n, k = sum(total), sum(good)
    own = sum(
        right * (1 - right_rate) ** 2 + (count - right) * wrong_rate**2
        for right, count, (right_rate, wrong_rate) in zip(good, total, rates, strict=True)
    )
    base_right, base_wrong = (k - 1) / (n - 1) if k else 0.0, k / (n - 1) if n > k else 0.0
    reference = k * (1 - base_right) ** 2 + (n - k) * base_wrong**2
    return own / n, reference / n


def _auroc(good: Sequence[int], total: Sequence[int]) -> float | None:
    bad = [count - right for count, right in zip(total, good, strict=True)]
    pairs = sum(good) * sum(bad)
    if pairs == 0:
        return None
    below, won = 0, 0.0
    for right, wrong in zip(good, bad, strict=True):
        won += right * (below + wrong / 2)
        below += wrong
    return won / pairs


def _aurc(good: Sequence[int], total: Sequence[int]) -> float:
    """Return the mean risk over coverage, strongest level first; ties are taken in expectation."""
    n = sum(total)
    covered = wrong = 0.0
    area = 0.0
    for right, count in zip(reversed(list(good)), reversed(list(total)), strict=True):
        share = (count - right) / count if count else 0.0
        for _ in range(count):
            covered += 1
            wrong += share
            area += wrong / covered / n
    return area


def as_json(calibration: Calibration) -> dict[str, Any]:
    """Return the JSON form that a snapshot holds."""
    return {**calibration._asdict(), "levels": [_level_json(level) for level in calibration.levels]}


def stored_levels(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the levels of a stored subject in the form of today.

    Snapshots of the first form gave the rate of the pooled block with the interval of the level alone; their
    counts say what the block was, so that rate and interval are worked out again from them.
    """
    levels: list[dict[str, Any]] = [dict(item) for item in measured["levels"]]
    if all("pooled_n" in item for item in levels):
        return levels
    known = {item["level"]: item for item in levels}
    counts = [(known[name]["right"], known[name]["n"]) if name in known else (0, 0) for name in LEVELS]
    rates = level_rates([right for right, _ in counts], [n for _, n in counts])
    return [_level_json(rate) for rate in rates if rate.level in known]


def _level_json(level: LevelRate) -> dict[str, Any]:
    return {**level._asdict(), "pooled_with": list(level.pooled_with)}
