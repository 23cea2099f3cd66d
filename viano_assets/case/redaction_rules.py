"""How the rules of redaction search a text: on the lines where one of their anchors stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from ahocorasick_rs import BytesAhoCorasick

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


_SCREENED = 1 << 18
"""Bytes that are screened at once: a text of nothing but needles has as many matches as letters."""


_MARKS = frozenset("@:;/-.")


@dataclass(frozen=True, slots=True)
class Rule:
    """A finder that runs on the lines where one of its anchors stands.

    The anchors are searched in the lowercased text without flags, which is fast enough for source trees
    of a hundred megabytes; the finders may then be as exact as they like. A finder gets the whole text
    and the slice to search in. Every match of an anchor holds one of the `needles`, lowercase words
    that tell at once whether the rule has anything to do; without needles it always looks.
    """

    anchors: tuple[re.Pattern[str], ...]
    find: Finder
    needles: frozenset[str] = frozenset()

    def regions(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """Yield the lines with an anchor; where they stand close together, all the rest at once."""
        for anchor in self.anchors:
            if _lead(anchor) not in lowered:
                continue
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


@cache
def _lead(anchor: re.Pattern[str]) -> str:
    """Return the mark that every match of an anchor begins with; empty when it is a letter or a choice.

    Looking for one character costs a tenth of looking for a pattern that begins with it.
    """
    pattern = anchor.pattern
    first = pattern[1] if pattern[0] == "\\" else pattern[0].replace(".", "")
    return first if first in _MARKS else ""


class Screen:
    """Tells in one pass over a text which rules may find something in it."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._needles = sorted({needle for rule in rules for needle in rule.needles})
        self._overlap = max(map(len, self._needles)) - 1
        self._search = BytesAhoCorasick([needle.encode("ascii") for needle in self._needles])

    def open_rules(self, lowered: str) -> list[Rule]:
        """Return the rules whose needles stand in the lowercased text, in order."""
        data = lowered.encode("utf-8", "surrogatepass")
        seen: set[int] = set()
        for start in range(0, len(data), _SCREENED):
            piece = data[start : start + _SCREENED + self._overlap]
            seen.update(match[0] for match in self._search.find_matches_as_indexes(piece, overlapping=True))
            if len(seen) == len(self._needles):
                break
        there = {self._needles[number] for number in seen}
        return [rule for rule in self._rules if not rule.needles or there & rule.needles]


def needles(words: str) -> frozenset[str]:
    """Return the words as the needles of a rule."""
    return frozenset(words.split())


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
