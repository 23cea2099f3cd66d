"""How the rules of redaction search a text: on the lines where one of their anchors stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Flavour: TypeAlias = Literal["prose", "data", "code"]
"""How eager the rules are; see `redaction`."""


class Found(NamedTuple):
    """A half-open slice of a text and the kind of what stands there."""

    start: int
    end: int
    kind: str


Finder: TypeAlias = Callable[[str, int, int, Flavour], Iterator[Found]]
"""Finds in a slice of a text what one rule names."""

_DENSE = 256
"""After so many lines a rule looks whether it had better read the rest in one go."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A finder that runs on the lines where one of its anchors stands.

    The anchors are searched in the lowercased text without flags, which is fast enough for source trees
    of a hundred megabytes; the finders may then be as exact as they like. A finder gets the whole text
    and the slice to search in.
    """

    anchors: tuple[re.Pattern[str], ...]
    find: Finder

    def regions(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """Yield the lines with an anchor; where they stand close together, all the rest at once."""
        for anchor in self.anchors:
            done = -1
            count = covered = 0
            for match in anchor.finditer(lowered):
                if match.start() < done:
                    continue
                start = text.rfind("\n", 0, match.start()) + 1
                end = text.find("\n", match.end())
                done = len(text) if end < 0 else end
                yield start, done
                count += 1
                covered += done - start
                if count == _DENSE and covered * 3 > done:
                    yield done, len(text)
                    break


def anchors(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Return the compiled anchors of a rule; they are searched in lowercased text."""
    return tuple(re.compile(pattern, re.ASCII) for pattern in patterns)


def disjoint(found: Iterable[Found]) -> list[Found]:
    """Order the finds and drop every one that overlaps an earlier or longer one."""
    kept: list[Found] = []
    for item in sorted(found, key=lambda f: (f.start, -f.end, f.kind)):
        if item.end > item.start and (not kept or item.start >= kept[-1].end):
            kept.append(item)
    return kept
