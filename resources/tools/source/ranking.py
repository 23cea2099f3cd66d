"""The answer of `source.rank` as evidence text: one JSON line per place, the score's shape in front."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from resources.tools.source.rank import NOTHING, Beside, Hit, Shape, rank
from resources.tools.source.reader import SourceIndex
from viano_assets.evidence.model import Location


class Part(NamedTuple):
    """One ranking: its text and its places, best first."""

    content: str
    places: tuple[Location, ...]


def ranked(
    index: SourceIndex,
    root: Path,
    text: str,
    focus: str,
    limit: int,
    cap: int,
    beside: Beside = NOTHING,
) -> list[Part]:
    """Rank functions and files; returns the ranking of the files, then that of the functions.

    In this order, so that what nobody read keeps the order of its own ranking among the places of a result.
    """
    result = rank(index, root, f"{text}\n\n{focus}" if focus else text, limit, beside=beside)
    return [
        _part("files", result.files, result.file_shape, cap),
        _part("symbols", result.symbols, result.symbol_shape, cap),
    ]


def _part(name: str, hits: Sequence[Hit], described: Shape, cap: int) -> Part:
    values = {k: round(v, 4) for k, v in described._asdict().items()}
    lines = [json.dumps({"ranking": name, "shape": values}, sort_keys=True)]
    places = []
    used = len(lines[0])
    for position, hit in enumerate(hits, 1):
        entry: dict[str, Any] = {
            "rank": position,
            "path": hit.path,
            "score": round(hit.score, 4),
            "signals": {k: round(v, 2) for k, v in hit.signals.items()},
        }
        if hit.symbol is not None:
            entry["symbol"] = hit.symbol
            entry["lines"] = [hit.line_start, hit.line_end]
        line = json.dumps(entry, ensure_ascii=False, sort_keys=True)
        used += len(line) + 1
        if used > cap:
            break
        lines.append(line)
        span = {"line_start": hit.line_start, "line_end": hit.line_end} if hit.symbol else {}
        places.append(Location(path=hit.path, symbol=hit.symbol, **span))
    return Part("\n".join(lines), tuple(places))
