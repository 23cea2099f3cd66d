"""Says what is right about a generated case, for Viano and for two baselines on the same cases."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.corpus.build import Case
from viano_assets.evaluation.correctness import root_cause_correct, row_matches, score
from viano_assets.evaluation.gold import Gold, GoldVerdict

TOP_ROWS = 3
REQUESTS = (
    re.compile(r"(log|protokoll|stack|trace|dump|absturzbericht)", re.IGNORECASE),
    re.compile(r"(state|save|record|datens[aä]tz|table|tabelle|spielstand|zustand)", re.IGNORECASE),
    re.compile(r"(version|revision|config|konfiguration|setting|einstellung)", re.IGNORECASE),
    re.compile(r"(exact|genau|\bids?\b|nummer|time of|uhrzeit|steps|schritte)", re.IGNORECASE),
)
"""Kinds of things a person can send: log, state, build and settings, one occurrence exactly described.

Two concrete requests are two that name something of these, together at least two kinds.
"""


def right(family: str, view: Mapping[str, Any], gold: Gold) -> bool:
    """Judge a view by its family's rule; twins and other families by verdict and root cause."""
    if family == "P1" and gold.rows():
        return _missing_rows_right(view, gold)
    if gold.verdict is GoldVerdict.INSUFFICIENT:
        return _asks_for_facts(view)
    scores = score(view, gold)
    return scores.verdict_correct if gold.is_control else bool(scores.confirmed and scores.root_cause_correct)


def confirmed_wrong(view: Mapping[str, Any], gold: Gold) -> bool:
    """Say whether something else than the truth was confirmed."""
    diagnosis = view.get("diagnosis") or {}
    if diagnosis.get("status") != "confirmed":
        return False
    if gold.is_control:
        return True
    return not (_missing_rows_right(view, gold) if gold.rows() else root_cause_correct(view, gold))


def _missing_rows_right(view: Mapping[str, Any], gold: Gold) -> bool:
    diagnosis = view.get("diagnosis") or {}
    if diagnosis.get("status") != "confirmed":
        return False
    ranked = [row for row in view["localisation"]["rows"][:TOP_ROWS] if row["basis"] == "cited"]
    found = any(row_matches(row, place) for row in ranked for place in gold.rows())
    cited = set((diagnosis.get("root_cause") or {}).get("evidence_ids", []))
    tools = {record["tool"] for record in view["evidence"] if record["evidence_id"] in cited}
    return found and any(tool.startswith("db.") for tool in tools)


def _asks_for_facts(view: Mapping[str, Any]) -> bool:
    diagnosis = view.get("diagnosis") or {}
    if diagnosis.get("inconclusive_kind") != "insufficient_information":
        return False
    kinds = [
        {i for i, kind in enumerate(REQUESTS) if kind.search(text)}
        for text in diagnosis.get("review_actions") or []
    ]
    concrete = [found for found in kinds if found]
    return len(concrete) >= 2 and len(set().union(*concrete)) >= 2


class Unit(NamedTuple):
    """A piece a retrieval baseline can name: a function's file and lines, a table row, a line of text."""

    path: str
    first: int
    last: int
    table: str | None
    key: Mapping[str, str]
    words: Sequence[str]


WORD = re.compile(r"[A-Za-zÀ-ÿ]+|\d+")
SPLIT = re.compile(r"[A-Z]?[a-zà-ÿß]+|[A-Z]+(?![a-z])|\d+")
BLOCK = 30
"""Lines of a source piece."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, identifiers split at case and underscore."""
    return [part.lower() for word in WORD.findall(text) for part in (word, *SPLIT.findall(word))]


def units_of(case: Case) -> list[Unit]:
    """Return what BM25 may choose from: blocks of source, lines of configuration, rows of the dump."""
    units = []
    for path, data in case.source.items():
        lines = data.decode().splitlines()
        for start in range(0, len(lines), BLOCK):
            text = path + " " + "\n".join(lines[start : start + BLOCK])
            units.append(Unit(path, start + 1, start + BLOCK, None, {}, words_of(text)))
    for path, data in case.diagnostics.items():
        if path.startswith("config/"):
            for number, line in enumerate(data.decode().splitlines(), 1):
                units.append(Unit(path, number, number, None, {}, words_of(line)))
    return units + _rows_of(case.diagnostics.get("db/world.sql", b"").decode())


def _rows_of(dump: str) -> list[Unit]:
    units = []
    for made in re.finditer(r"CREATE TABLE `(\w+)` \((.*?)\n\) ENGINE", dump, re.DOTALL):
        table, columns = made[1], re.findall(r"^  `(\w+)`", made[2], re.MULTILINE)
        found = re.search(rf"INSERT INTO `{table}` VALUES\s(.*?);\n/\*!40000", dump, re.DOTALL)
        for row in re.findall(r"\(((?:[^()']|'(?:\\.|[^'])*')*)\)", found[1]) if found else []:
            key = dict(zip(columns, (value.strip("'") for value in row.split(",")), strict=False))
            units.append(Unit("", 0, 0, table, key, words_of(f"{table} {row}")))
    return units


def bm25(report: str, units: Sequence[Unit], *, k1: float = 1.2, b: float = 0.75) -> list[Unit]:
    """Return the units, best first (Robertson and Zaragoza 2009, with the usual constants)."""
    counts = [Counter(unit.words) for unit in units]
    sizes = [sum(count.values()) for count in counts]
    mean = sum(sizes) / max(1, len(sizes))
    spread = Counter(word for count in counts for word in count)
    query = sorted(set(words_of(report)))
    total = len(units)

    def worth(index: int) -> float:
        result = 0.0
        for word in query:
            times = counts[index][word]
            if times:
                rarity = math.log(1 + (total - spread[word] + 0.5) / (spread[word] + 0.5))
                result += rarity * times * (k1 + 1) / (times + k1 * (1 - b + b * sizes[index] / mean))
        return result

    order = sorted(range(total), key=lambda index: (-worth(index), index))
    return [units[index] for index in order]


def bm25_right(case: Case, gold: Gold) -> bool:
    """Judge the answer "what BM25 ranks first (rows: first three) is the confirmed cause"."""
    if gold.is_control:
        return False
    ranked = bm25(case.report.decode(), units_of(case))
    if gold.rows():
        rows = [{"table": unit.table, "key": unit.key} for unit in ranked[:TOP_ROWS]]
        return any(row_matches(row, place) for row in rows for place in gold.rows())
    best = ranked[0]
    return any(
        place.path == best.path
        and place.lines
        and best.first <= place.lines[1]
        and place.lines[0] <= best.last
        for place in gold.locations
    )


def constant_right(gold: Gold) -> bool:
    """Judge the answer "insufficient information: send the log and the saved state", always."""
    return gold.verdict is GoldVerdict.INSUFFICIENT
