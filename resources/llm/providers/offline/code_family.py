"""Code and Upstream: rank, read the best places, look for what their code does against the report.

Two things can carry a claim about code. A contradiction that is read: a comparison that excludes what the
report promises, or a state that is changed before it is tested. Without one, how well the signals of the
ranking meet in one place, by a measured relation (`calibration.py`); that alone never outweighs a cause that
data, configuration or a log show directly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resources.llm.providers.offline import calibration
from resources.llm.providers.offline.anomalies import Anomaly, anomalies
from resources.llm.providers.offline.findings import Ranked, Record
from resources.llm.providers.offline.registration import plan_registration
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from resources.llm.providers.offline.wording import line_quote, plain, say
from viano_assets.phases.wire import Confidence

RANK_LIMIT = 20
READS = 3
MAX_LINES = 60

_CALLABLE = re.compile(r"([A-Za-z_]\w*)$")
_STEP = re.compile(r"^\s*(?:\}?\s*(?:else\s+)?if|elif|while|return|raise|throw|for|switch|case)\b")
_WORD = re.compile(r"[A-Za-z]{3,}")


def rank_wish(scene: Scene) -> Wish:
    """Return the look that ranks the whole source for the report."""
    return Wish(
        "source.rank",
        {"text": scene.report_text(), "limit": RANK_LIMIT},
        "Which functions and files fit the report best, and by which signals?",
    )


def best_places(scene: Scene, count: int) -> list[Ranked]:
    """Return the best ranked functions, in the order of the ranking."""
    symbols = next(iter(scene.findings.rankings("symbols")), None)
    return [] if symbols is None else list(symbols.places)[:count]


def read_wish(place: Ranked, countercheck: str | None = None) -> Wish:
    """Return the look that reads one ranked function, at most `MAX_LINES` lines of it."""
    end = min(place.line_end, place.line_start + MAX_LINES - 1)
    span = {"path": place.path, "line_start": place.line_start, "line_end": end}
    return Wish("source.read", span, f"Read rank {place.rank}: what does it decide?", countercheck)


def plan_code(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Code in order."""
    if "source.rank" not in scene.tools:
        return
    yield rank_wish(scene)
    for place in best_places(scene, READS):
        yield read_wish(place)
    yield from plan_registration(scene)


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
    found: list[tuple[Ranked, Record]] = []
    records = [r for r in scene.findings.of_kind("source", "config") if r.tool == "source.read"]
    for place in best_places(scene, RANK_LIMIT):
        for record in records:
            location = record.location
            if location.path != place.path or location.line_start is None or location.line_end is None:
                continue
            if location.line_start == place.line_start and record not in [r for _, r in found]:
                found.append((place, record))
                break
    return found


def judge_code(scene: Scene) -> Judgement:
    """Judge the family Code from contradictions that were read, else from how the signals meet."""
    reads = read_records(scene)
    ranking = next(iter(scene.findings.rankings("symbols")), None)
    if not reads or ranking is None:
        return Judgement(
            "neutral",
            Confidence.UNASSESSED,
            reason=say(scene, "No function was read yet.", "Noch keine Funktion wurde gelesen."),
        )
    shown = tuple(record for _, record in reads[:READS])
    found = next(iter(anomalies(scene, best_places(scene, READS), list(shown))), None)
    if found is not None:
        return _shown(scene, found, shown)
    return _by_signals(scene, reads, shown)


def _shown(scene: Scene, found: Anomaly, reads: tuple[Record, ...]) -> Judgement:
    cause = tuple(dict.fromkeys(found.records))
    supports = found.level.rank >= Confidence.SUPPORTED.rank
    rest = tuple(record for record in reads if record not in cause)
    return Judgement(
        "supports" if supports else "neutral",
        found.level,
        support=(*cause, *found.logs, *rest),
        cause=cause,
        tested=(*cause, *found.logs),
        reason=found.reason,
        summary=found.summary,
        description=found.description,
        limits=(_not_run(scene),),
    )


def _not_run(scene: Scene) -> str:
    return say(
        scene,
        "Nothing was executed: the order of events at run time was not observed.",
        "Nichts wurde ausgeführt: Der Ablauf zur Laufzeit ist nicht beobachtet.",
    )


def signal_level(scene: Scene) -> Confidence:
    """Return the level that the shape of the ranking carries by itself."""
    symbols = next(iter(scene.findings.rankings("symbols")), None)
    files = next(iter(scene.findings.rankings("files")), None)
    if symbols is None:
        return Confidence.UNASSESSED
    return calibration.level(symbols, files)


def _by_signals(scene: Scene, reads: list[tuple[Ranked, Record]], shown: tuple[Record, ...]) -> Judgement:
    level = signal_level(scene)
    if "diagnostics" in scene.case.roles:
        level = min(level, Confidence.PLAUSIBLE, key=lambda item: item.rank)
    supports = level.rank >= Confidence.SUPPORTED.rank
    place, record = reads[0]
    name = quoted(place.symbol or place.path)
    signals = _signals(place)
    return Judgement(
        "supports" if supports else "neutral",
        level,
        support=shown,
        cause=shown,
        tested=shown,
        reason=say(
            scene,
            f"{name} in {place.path} fits the report best ({signals}); {_others(reads, 'then')}.",
            f"{name} in {place.path} passt am besten zum Bericht ({signals}); {_others(reads, 'danach')}.",
        ),
        summary=_summary(scene, place),
        description=_description(scene, place, record, signals),
        limits=(_not_run(scene),),
    )


def _signals(place: Ranked) -> str:
    strong = sorted(((value, name) for name, value in place.signals.items() if value >= 0.3), reverse=True)
    return ", ".join(name for _, name in strong[:5]) or "text"


def _others(reads: list[tuple[Ranked, Record]], word: str) -> str:
    names = [quoted(place.symbol or place.path) for place, _ in reads[1:3]]
    return f"{word} {', '.join(names)}" if names else "-"


def _summary(scene: Scene, place: Ranked) -> str:
    name = quoted(place.symbol or place.path)
    topic = plain(scene.case.title, 120).rstrip(".")
    about = f": {topic}" if topic else ""
    return say(
        scene,
        f"The fault lies in {name} ({place.path}){about}.",
        f"Der Fehler liegt in {name} ({place.path}){about}.",
    )


def decisive_lines(scene: Scene, record: Record, count: int = 2) -> list[str]:
    """Return the deciding lines of a function that share most words with the report, in their order."""
    words = {word.casefold()[:6] for word in _WORD.findall(scene.report_text())}
    lines = [line for line in record.content.splitlines() if line.strip()]
    scored = []
    for number, line in enumerate(lines[1:], start=1):
        if line.lstrip().startswith(("#", "//", "*", '"', "'")) or len(line.strip()) < 8:
            continue
        shared = len({word.casefold()[:6] for word in _WORD.findall(line)} & words)
        scored.append((shared + (1.5 if _STEP.match(line) else 0.0), number))
    best = sorted(scored, key=lambda item: (-item[0], item[1]))[:count]
    return [lines[number].strip() for score, number in sorted(best, key=lambda item: item[1]) if score >= 1]


def _description(scene: Scene, place: Ranked, record: Record, signals: str) -> str:
    quotes = [q for q in (line_quote(record, line) for line in decisive_lines(scene, record)) if q]
    name = quoted(place.symbol or place.path)
    deciding = ""
    if quotes:
        deciding = say(
            scene,
            f" The lines that decide there: {' … '.join(quotes)}.",
            f" Dort entscheiden: {' … '.join(quotes)}.",
        )
    return say(
        scene,
        f"{name} is where the signals of the report meet ({signals}).{deciding} That this decision is wrong "
        "rests on the behaviour the report expects.",
        f"In {name} treffen die Hinweise des Berichts zusammen ({signals}).{deciding} Dass die Entscheidung "
        "falsch ist, beruht auf dem Verhalten, das der Bericht erwartet.",
    )


def judge_upstream(scene: Scene) -> Judgement:
    """Judge the family Upstream: what lies behind the first place stays open unless the first is a lead."""
    reads = read_records(scene)
    references = [r for look in scene.findings.by("source.references") for r in look.records if r.usable]
    if not references and len(reads) < READS + 1:
        reason = say(scene, "No caller was looked at.", "Kein Aufrufer wurde angesehen.")
        return Judgement("neutral", Confidence.UNASSESSED, reason=reason)
    later = tuple(r for _, r in reads[READS:])
    tested = tuple(references[:2]) + later[:1]
    if judge_code(scene).level.rank >= Confidence.SUPPORTED.rank and reads:
        first = reads[0][1]
        return Judgement(
            "contradicts",
            Confidence.WEAKENED,
            against=(first,),
            tested=tested or (first,),
            reason=say(
                scene,
                "The signals meet in the place itself; those who use it were looked at and fit the "
                "report less.",
                "Die Hinweise treffen in der Stelle selbst zusammen; ihre Aufrufer passen weniger "
                "zum Bericht.",
            ),
        )
    return Judgement(
        "neutral",
        min(Confidence.PLAUSIBLE, judge_code(scene).level, key=lambda item: item.rank)
        if later
        else Confidence.UNASSESSED,
        support=later,
        tested=tested,
        reason=say(
            scene,
            "Callers and lower ranked functions were looked at; nothing sets them apart from the first.",
            "Aufrufer und weiter hinten stehende Funktionen wurden angesehen; nichts hebt sie hervor.",
        ),
    )
