"""What is known about a known bug: the verdict and the places its fix touched. Never shown to a phase.

Two forms are read: a case folder's `gold.json` and a line of a recipe (docs/evaluation.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

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


NOTES = frozenset({"canaries", "missing", "note", "premise", "shown_by", "why"})
"""Keys that explain a gold to people; no code reads them."""

_FORMS = (frozenset({"verdict", "locations"}), frozenset({"verdict", "files", "functions"}))
"""Keys of a case folder's `gold.json`, or of a recipe."""


class GoldLocation(BaseModel):
    """One place the fix touched: source (`path`, perhaps `symbol`, `lines`) or data (`table`, …).

    `path` is relative to the top of the source, parts divided by `/`, as answers name it; `lines` are first
    and last, counted from 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    path: str | None = None
    symbol: str | None = None
    lines: tuple[int, int] | None = None
    table: str | None = None
    key: dict[str, str] | None = None
    column: str | None = None

    def problem(self) -> str:
        """Return why no answer could ever meet this place, empty when one can."""
        source = {"symbol": self.symbol, "lines": self.lines}
        data = {"key": self.key, "column": self.column}
        lost = [name for name, value in (source if self.path is None else data).items() if value is not None]
        empty = [name for name, value in self if value is not None and not value]
        if (self.path is None) == (self.table is None):
            found = "it has neither path nor table" if self.path is None else "it has both path and table"
        elif empty:
            found = f"{empty[0]} is empty"
        elif lost:
            found = f"{lost[0]} does not go with {'table' if self.path is None else 'path'}"
        elif self.path is not None and not _is_plain(self.path):
            found = f"path {self.path!r} is not the plain relative path of a file ('src/a.cpp')"
        elif self.lines is not None and not 1 <= self.lines[0] <= self.lines[1]:
            found = f"lines {list(self.lines)} are not first and last line, counted from 1"
        else:
            found = ""
        return found


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    return path == path.strip() and "\\" not in path and not {"", ".", ".."} & set(parts)


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
    """Read the gold of a case folder or of a recipe line; strictly, since a slip falsifies what is measured.

    Args:
        document: either form; `NOTES` may stand beside its keys.
        where: what an error names.

    Raises:
        InputError: `gold_invalid` naming the place and what is wrong.
    """
    if not isinstance(document, Mapping):
        raise _invalid(where, "it is no object")
    known = next((form for form in _FORMS if form & (document.keys() - {"verdict"})), _FORMS[0])
    unknown = sorted(document.keys() - known - NOTES)
    if unknown:
        raise _invalid(where, f"unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
    return read_record(document, where)


def read_record(document: Mapping[str, Any], where: str) -> Gold:
    """Read the gold that stands among other keys, as in an entry of `corpus.json`.

    Raises:
        InputError: `gold_invalid` naming the place and what is wrong.
    """
    if document.get("verdict") not in list(GoldVerdict):
        raise _invalid(where, f"verdict is none of {', '.join(GoldVerdict)}")
    verdict = GoldVerdict(document["verdict"])
    names = ("locations",) if "locations" in document else ("files", "functions")
    for name in names:
        if not isinstance(document.get(name, []), list):
            raise _invalid(where, f"{name} is no list")
    if "locations" in document:
        places = [_place(item, f"locations[{n}]", where) for n, item in enumerate(document["locations"])]
    else:
        places = _recipe_places(document, where)
    if (verdict is GoldVerdict.DEFECT) != bool(places):
        what = "a control has no locations" if places else "a defect needs at least one location"
        raise _invalid(where, what)
    return Gold(verdict, tuple(places))


def _invalid(where: str, what: str) -> InputError:
    return InputError("gold_invalid", what, where=where, hint="see docs/evaluation.md")


def _place(item: object, name: str, where: str) -> GoldLocation:
    try:
        place = GoldLocation.model_validate(item)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join([name, *map(str, first["loc"])])
        raise _invalid(where, f"{at}: {first['msg']}") from error
    problem = place.problem()
    if problem:
        raise _invalid(where, f"{name}: {problem}")
    return place


def _recipe_places(document: Mapping[str, Any], where: str) -> list[GoldLocation]:
    functions = [str(name).partition(":") for name in document.get("functions", [])]
    named = {path for path, _, _ in functions}
    places = [
        _place({"path": path}, f"files[{number}]", where)
        for number, path in enumerate(document.get("files", []))
        if path not in named
    ]
    for number, (path, colon, symbol) in enumerate(functions):
        if not colon:
            raise _invalid(where, f"functions[{number}] is not 'path:symbol'")
        places.append(_place({"path": path, "symbol": symbol}, f"functions[{number}]", where))
    return places
