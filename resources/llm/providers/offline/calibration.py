"""How far the shape of a ranking carries a level: thresholds measured on the development cases.

The data file is written by `scripts` of the benchmark (docs/analyst.md); its hash stands in it.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from importlib import resources
from typing import Any

from resources.llm.providers.offline.findings import Ranking
from viano_assets.phases.wire import Confidence

FEATURES = ("top", "margin", "agreement", "together", "frames")


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("calibration.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def features(symbols: Ranking, files: Ranking | None) -> dict[str, float]:
    """Return what is known of a ranking's worth: top score, lead, agreement, file agreement, frames."""
    best = symbols.places[0] if symbols.places else None
    first = files.places[0].path if files is not None and files.places else None
    return {
        "top": float(symbols.shape.get("top", 0.0)),
        "margin": float(symbols.shape.get("margin", 0.0)),
        "agreement": float(symbols.shape.get("agreement", 0.0)),
        "together": 1.0 if best is not None and best.path == first else 0.0,
        "frames": float(best.signals.get("frames", 0.0)) if best is not None else 0.0,
    }


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
    return Confidence.PLAUSIBLE if chance >= data["plausible"] else Confidence.WEAKENED
