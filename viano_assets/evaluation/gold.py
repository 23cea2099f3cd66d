"""What is known about a known bug: the verdict and the places its fix touched. Never shown to a phase.

Two forms are read: a case folder's `gold.json` and a line of a recipe (docs/evaluation.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from viano_assets.errors import InputError


class GoldVerdict(StrEnum):
    """What the case really is; everything but `defect` is a control."""

    DEFECT = "defect"
    INTENDED = "intended_behaviour"
    INSUFFICIENT = "insufficient_information"
    WRONG_PREMISE = "wrong_premise"


KIND_OF_CONTROL = {
    GoldVerdict.INTENDED: "intended_behaviour",
    GoldVerdict.INSUFFICIENT: "insufficient_information",
    GoldVerdict.WRONG_PREMISE: "premise_contradicted",
}
"""Control to the `inconclusive_kind` that is right for it."""


class GoldLocation(BaseModel):
    """One place the fix touched: source (`path`, perhaps `symbol`, `lines`) or data (`table`, …)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    path: str | None = None
    symbol: str | None = None
    lines: tuple[int, int] | None = None
    table: str | None = None
    key: dict[str, str] | None = None
    column: str | None = None


class Gold(NamedTuple):
    """The truth about one case."""

    verdict: GoldVerdict
    locations: tuple[GoldLocation, ...]

    @property
    def is_control(self) -> bool:
        """True when nothing is to be confirmed."""
        return self.verdict is not GoldVerdict.DEFECT

    def files(self) -> set[str]:
        """Return the paths of all source locations."""
        return {place.path for place in self.locations if place.path is not None}

    def symbols(self) -> set[tuple[str, str]]:
        """Return (path, symbol) of all locations that name a symbol."""
        return {(p.path, p.symbol) for p in self.locations if p.path is not None and p.symbol is not None}

    def rows(self) -> list[GoldLocation]:
        """Return the data locations."""
        return [place for place in self.locations if place.table is not None]


def read_gold(document: Mapping[str, Any], where: str) -> Gold:
    """Read either form.

    Raises:
        InputError: `gold_invalid` naming the file.
    """
    try:
        verdict = GoldVerdict(document["verdict"])
        if "locations" in document:
            places = [GoldLocation.model_validate(item) for item in document["locations"] or []]
        else:
            places = _recipe_places(document)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            "gold_invalid", str(error).split("\n", 1)[0], where=where, hint="see docs/evaluation.md"
        ) from error
    return Gold(verdict, tuple(places))


def _recipe_places(document: Mapping[str, Any]) -> list[GoldLocation]:
    functions = [str(name) for name in document.get("functions", [])]
    named = {function.split(":", 1)[0] for function in functions}
    places = [GoldLocation(path=path) for path in document.get("files", []) if path not in named]
    for function in functions:
        path, symbol = function.split(":", 1)
        places.append(GoldLocation(path=path, symbol=symbol))
    return places
