"""The answer of `source.rank` as evidence text: one JSON line per place, the score's shape in front."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from resources.tools.source.rank import Hit, rank
from resources.tools.source.reader import SourceIndex
from viano_assets.evidence.model import Location


class Part(NamedTuple):
    """One ranking: its text and its places, best first."""

    content: str
    places: tuple[Location, ...]


def ranked(index: SourceIndex, root: Path, text: str, focus: str, limit: int, cap: int) -> list[Part]:
    """Rank functions and files; returns the ranking of the functions, then that of the files."""
    result = rank(index, root, f"{text}\n\n{focus}" if focus else text, limit)
    return [_part("symbols", result.symbols, cap), _part("files", result.files, cap)]


def shape(hits: Sequence[Hit]) -> dict[str, Any]:
    """Describe the scores: the best, its relative lead over the second, how many signals agree."""
    if not hits:
        return {"top": 0.0, "margin": 0.0, "agreement": 0}
    top = hits[0].score
    second = hits[1].score if len(hits) > 1 else 0.0
    agreement = sum(1 for value in hits[0].signals.values() if value >= 0.5)
    return {
        "top": round(top, 4),
        "margin": round((top - second) / top, 4) if top else 0.0,
        "agreement": agreement,
    }


def _part(name: str, hits: Sequence[Hit], cap: int) -> Part:
    lines = [json.dumps({"ranking": name, "shape": shape(hits)}, sort_keys=True)]
    places = []
    used = len(lines[0])
    for position, hit in enumerate(hits, 1):
        entry: dict[str, Any] = {
            "rank": position,
            "path": hit.path,
            "score": round(hit.score, 4),
            "signals": hit.signals,
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
