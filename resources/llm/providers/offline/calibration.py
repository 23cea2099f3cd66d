"""How far the shape of a ranking carries a level: thresholds measured on the development cases.

`make bench NAME=fit_analyst` writes the data file and measures it k-fold by project; the hash of the cases it
was learned on stands in it.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from importlib import resources
from typing import Any

from resources.llm.providers.offline.findings import Ranking
from viano_assets.phases.wire import Confidence

FEATURES = ("symbols", "files")
"""What the relation knows: the log odds that the ranking itself states for its functions and its files."""


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("calibration.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def features(symbols: Ranking, files: Ranking | None) -> dict[str, float]:
    """Return the log odds stated by the two rankings, 0.5 where none is."""
    return {
        "symbols": _odds(symbols.shape.get("confidence", 0.5)),
        "files": _odds(files.shape.get("confidence", 0.5) if files is not None else 0.5),
    }


def _odds(chance: float) -> float:
    bounded = min(max(float(chance), 0.01), 0.99)
    return math.log(bounded / (1.0 - bounded))


def probability(values: dict[str, float], weights: dict[str, float]) -> float:
    """Return the chance that the first places hold the fault."""
    score = weights["bias"] + sum(weights[name] * values[name] for name in FEATURES)
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


def level(symbols: Ranking, files: Ranking | None) -> Confidence:
    """Return the level of the family Code that a ranking carries by itself."""
    data = _data()
    chance = probability(features(symbols, files), data["weights"])
    if chance >= data["strongly_supported"]:
        return Confidence.STRONGLY_SUPPORTED
    if chance >= data["supported"]:
        return Confidence.SUPPORTED
    return Confidence.PLAUSIBLE if chance >= data["plausible"] else Confidence.UNASSESSED
