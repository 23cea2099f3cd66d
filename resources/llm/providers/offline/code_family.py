"""Code and Upstream: rank, read the best places, and say how far the signals agree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resources.llm.providers.offline.findings import Ranked, Record
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted, ratio
from viano_assets.phases.wire import Confidence

RANK_LIMIT = 20
READS = 3
MAX_LINES = 60

STRONG = (3, 0.12)
SUPPORTED = (2, 0.05)
"""Agreement of signals and lead over the second place that carry a level (fitted, docs/analyst.md)."""

_CALLABLE = re.compile(r"([A-Za-z_]\w*)$")


def rank_wish(scene: Scene) -> Wish:
    """Return the look that ranks the whole source for the report."""
    return Wish(
        "source.rank",
        {"text": scene.report_text(), "limit": RANK_LIMIT},
        "Which functions and files fit the report best, and by which signals?",
    )


def best_places(scene: Scene, count: int) -> list[Ranked]:
    """Return the ranked functions to read: the best of the best file first, then by rank."""
    symbols = next(iter(scene.findings.rankings("symbols")), None)
    files = next(iter(scene.findings.rankings("files")), None)
    if symbols is None:
        return []
    order = list(symbols.places)
    if files is not None and files.places:
        top = files.places[0].path
        inside = [place for place in order if place.path == top]
        order = [*inside[:1], *[place for place in order if place not in inside[:1]]]
    return order[:count]


def _span(place: Ranked) -> dict[str, object]:
    end = min(place.line_end, place.line_start + MAX_LINES - 1)
    return {"path": place.path, "line_start": place.line_start, "line_end": end}


def read_wish(place: Ranked, countercheck: str | None = None) -> Wish:
    """Return the look that reads one ranked function, at most `MAX_LINES` lines of it."""
    return Wish("source.read", _span(place), f"Read rank {place.rank}: what does it decide?", countercheck)


def plan_code(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Code in order."""
    if "source.rank" not in scene.tools:
        return
    yield rank_wish(scene)
    for place in best_places(scene, READS):
        yield read_wish(place)


def plan_upstream(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Upstream: who uses the best place, and what do they hand over."""
    if "source.rank" not in scene.tools:
        return
    yield rank_wish(scene)
    for place in best_places(scene, 1):
        name = _CALLABLE.search(place.symbol or "")
        if name is not None:
            yield Wish(
                "source.references",
                {"name": name[1], "limit": 20},
                "Who uses the place where the fault shows?",
                scene.id_of("Code"),
            )
    for place in best_places(scene, READS + 2)[READS:]:
        yield read_wish(place)


def read_records(scene: Scene) -> list[tuple[Ranked, Record]]:
    """Return the read records with the ranked place each shows, in rank order."""
    found = []
    records = scene.findings.of_kind("source", "config")
    for place in best_places(scene, RANK_LIMIT):
        for record in records:
            location = record.location
            if location.path != place.path or location.line_start is None or location.line_end is None:
                continue
            if location.line_start <= place.line_start <= location.line_end:
                found.append((place, record))
                break
    return found


def judge_code(scene: Scene) -> Judgement:
    """Judge the family Code from the ranking's shape and what was read."""
    reads = read_records(scene)
    ranking = next(iter(scene.findings.rankings("symbols")), None)
    if not reads or ranking is None:
        return Judgement("neutral", Confidence.UNASSESSED, reason="No function was read yet.")
    agreement, margin = ratio(ranking.shape, "agreement"), ratio(ranking.shape, "margin")
    level = Confidence.PLAUSIBLE
    if agreement >= STRONG[0] and margin >= STRONG[1]:
        level = Confidence.STRONGLY_SUPPORTED
    elif agreement >= SUPPORTED[0] and margin >= SUPPORTED[1]:
        level = Confidence.SUPPORTED
    effect = "supports" if level is not Confidence.PLAUSIBLE else "neutral"
    place, record = reads[0]
    names = ", ".join(sorted(name for name, value in place.signals.items() if value >= 0.3)) or "text"
    return Judgement(
        effect,
        level,
        support=tuple(r for _, r in reads[:READS]),
        cause=tuple(r for _, r in reads[:READS]),
        tested=tuple(r for _, r in reads[:READS]),
        reason=f"{place.symbol or place.path} fits best; agreeing signals: {names}.",
        summary=f"The reported behaviour is decided in {quoted(place.symbol or place.path)} ({place.path}).",
        description=_description(place, record, names),
        limits=("Nothing was executed: the order of events at run time was not observed.",),
    )


def _description(place: Ranked, record: Record, names: str) -> str:
    lines = [line for line in record.content.splitlines() if line.strip()]
    head = lines[0].strip()[:200] if lines else ""
    quote = f" It begins {quoted(head)}." if head else ""
    return (
        f"{quoted(place.symbol or place.path)} stands first for this report by the signals {names}.{quote} "
        "The signals show where the behaviour is decided; that its decision is wrong rests on the report's "
        "expectation."
    )


def judge_upstream(scene: Scene) -> Judgement:
    """Judge the family Upstream: later ranks stay plausible unless the best place is no real lead."""
    reads = read_records(scene)
    code = judge_code(scene)
    references = [r for look in scene.findings.by("source.references") for r in look.records if r.usable]
    if not references and len(reads) < READS + 1:
        return Judgement("neutral", Confidence.UNASSESSED, reason="No caller was looked at yet.")
    later = tuple(r for _, r in reads[1:READS])
    tested = tuple(references[:2]) + later[:1]
    if code.level.rank >= Confidence.SUPPORTED.rank:
        against = tuple(r for _, r in reads[:1])
        return Judgement(
            "contradicts",
            Confidence.WEAKENED,
            support=(),
            against=against,
            tested=tested or against,
            reason="The signals meet in the place itself rather than in those who use it.",
        )
    return Judgement(
        "neutral",
        Confidence.PLAUSIBLE if later else Confidence.UNASSESSED,
        support=later,
        tested=tested,
        reason="Places behind the first were read; nothing decides between them.",
    )
