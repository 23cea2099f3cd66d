"""The learned weights of the ranking, as data with the corpus they were learned on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from viano_assets.data_files import CONFIG
from viano_assets.errors import ConfigurationError

SCHEMA = "ranking-weights-v1"


@dataclass(frozen=True)
class Weights:
    """Weights of the signals for files and for functions.

    `symbols` also holds `file_rank`: the weight of the credit a function has from the rank of its file.
    `confidence` are the coefficients of the logistic model that turns the shape of a ranking into the
    probability that its first file is right, `bias` among them.
    """

    files: dict[str, float]
    symbols: dict[str, float]
    confidence: dict[str, float]
    corpus_sha256: str


def parse(raw: dict[str, Any]) -> Weights:
    """Read the stored form.

    Raises:
        ConfigurationError: `ranking_weights` when it is not the stored form of this release.
    """
    try:
        names = ("files", "symbols", "confidence") if raw["schema"] == SCHEMA else ()
        parts = {n: {k: float(v) for k, v in raw[n].items()} for n in names}
        return Weights(parts["files"], parts["symbols"], parts["confidence"], str(raw["corpus_sha256"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            "ranking_weights",
            f"the ranking weights cannot be used: {error}",
            where="config/ranking.json",
            hint="restore the file or make it anew with tests/benchmarks/fit_ranking.py",
        ) from error


@cache
def shipped() -> Weights:
    """Return the weights that ship with Viano."""
    return parse(json.loads((CONFIG / "ranking.json").read_text(encoding="utf-8")))
