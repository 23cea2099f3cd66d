"""Code and Upstream: rank, read the best places, look for what their code does against the report.

Two things can carry a claim about code. A contradiction that is read: a comparison that excludes what the
report promises, or a state that is changed before it is tested. Without one, how well the signals of the
ranking meet in one place, by a measured relation (`calibration.py`); that alone never outweighs a cause that
data, configuration or a log show directly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from resources.llm.providers.offline import calibration
from resources.llm.providers.offline.anomalies import Anomaly, anomalies
from resources.llm.providers.offline.crash import plan_crash
from resources.llm.providers.offline.findings import Ranked, Record
from resources.llm.providers.offline.registration import plan_registration
from resources.llm.providers.offline.scene import Judgement, Scene, Wish, quoted
from resources.llm.providers.offline.sequence import plan_sequence
from resources.llm.providers.offline.wording import line_quote, plain, say
from viano_assets.phases.diagnosis.claims import same_path
from viano_assets.phases.wire import Confidence

RANK_LIMIT = 20
READS = 3
MAX_LINES = 60
WINDOWS = 3

CLUES = {
    "text": ("wording", "Wortlaut"),
    "title": ("title", "Titel"),
    "frames": ("stack frames", "Aufrufstapel"),
    "paths": ("file names", "Dateinamen"),
    "identifiers": ("identifiers", "Bezeichner"),
    "literals": ("messages", "Meldungen"),
    "names": ("names in the code", "Namen im Code"),
    "direct": ("calls of the script", "Aufrufe des Skripts"),
    "further": ("what the script reaches", "was das Skript erreicht"),
    "tests": ("tests", "Tests"),
    "docs": ("documentation", "Dokumentation"),
    "terms": ("rare words", "seltene Wörter"),
    "coverage": ("share of the report's words", "Anteil der Wörter des Berichts"),
    "above": ("neighbouring code", "benachbarter Code"),
    "below": ("neighbouring code", "benachbarter Code"),
    "code": ("wording", "Wortlaut"),
    "special": ("behaviour it stands for", "Verhalten, für das sie steht"),
    "met": ("what the script reaches", "was das Skript erreicht"),
    "synonyms": ("words that stand together in this source", "Wörter, die in dieser Quelle zusammenstehen"),
    "overrides": ("what it overrides", "was es überschreibt"),
    "imports": ("imports", "Importe"),
    "shown": ("texts of the interface", "Texte der Oberfläche"),
    "entities": ("names found in the data", "Namen aus den Daten"),
    "history": ("recent changes", "letzte Änderungen"),
}
"""How a signal of the ranking is called for people, in English and German."""

_CALLABLE = re.compile(r"([A-Za-z_]\w*)$")
_STEP = re.compile(r"^\s*(?:\}?\s*(?:else\s+)?if|elif|while|return|raise|throw|for|switch|case)\b")
_WORD = re.compile(r"[A-Za-z]{3,}")


def rank_wish(scene: Scene) -> Wish:
    """Return the look that ranks the whole source for the report."""
    return Wish(
        "source.rank",
        {"text": scene.report_text(), "limit": RANK_LIMIT},
        say(
            scene,
            "Which functions and files fit the report best, and by which signals?",
            "Welche Funktionen und Dateien passen am besten zum Bericht, und woran?",
        ),
    )


def best_places(scene: Scene, count: int) -> list[Ranked]:
    """Return the best ranked functions; before them the best one of the best ranked file, numbered anew."""
    symbols = next(iter(scene.findings.rankings("symbols")), None)
    files = next(iter(scene.findings.rankings("files")), None)
    if symbols is None:
        return []
    first = files.places[0].path if files is not None and files.places else ""
    leading = [place for place in symbols.places if place.path == first][:1]
    ordered = [*leading, *(place for place in symbols.places if place not in leading)]
    return [replace(place, rank=number) for number, place in enumerate(ordered[:count], 1)]


def windows(scene: Scene, place: Ranked) -> list[tuple[int, int]]:
    """Return the spans to read of a ranked function: around a frame of the report, else from its start.

    A span has at most `MAX_LINES` lines; the first place is read further on, as far as `WINDOWS` spans go.
    """
    last = place.line_end
    if last - place.line_start < MAX_LINES:
        return [(place.line_start, last)]
    framed = [line for line in frame_lines(scene, place.path) if place.line_start <= line <= last]
    count = WINDOWS if place.rank == 1 and not framed else 1
    starts = [place.line_start + number * MAX_LINES for number in range(count)]
    if framed:
        start = max(place.line_start, min(framed[0] - MAX_LINES * 2 // 3, last - MAX_LINES + 1))
        starts = [start]
    return [(start, min(last, start + MAX_LINES - 1)) for start in starts if start <= last]


def frame_lines(scene: Scene, path: str) -> list[int]:
    """Return the lines of a file that the report's stack frames name, innermost last."""
    found = []
    for source in scene.case.sources:
        file, line = source.attributes.get("file", "").lstrip("./"), source.attributes.get("line", "")
        if source.kind == "stack_frame" and line.isdigit() and same_path(file, path):
            found.append(int(line))
    return found


def read_wishes(scene: Scene, place: Ranked) -> Iterator[Wish]:
    """Yield the looks that read one ranked function."""
    for first, last in windows(scene, place):
        span = {"path": place.path, "line_start": first, "line_end": last}
        yield Wish(
            "source.read",
            span,
            say(
                scene,
                f"Read place {place.rank} of the ranking: what does it decide?",
                f"Platz {place.rank} der Rangfolge lesen: Was entscheidet er?",
            ),
        )


def plan_code(scene: Scene) -> Iterator[Wish]:
    """Yield the looks of the family Code in order."""
    if "source.rank" not in scene.tools:
        return
    yield rank_wish(scene)
    yield from plan_crash(scene)
    for place in best_places(scene, READS):
        yield from read_wishes(scene, place)
    yield from plan_registration(scene)
    yield from plan_sequence(scene, best_places(scene, READS))


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
                say(
                    scene,
                    "Who uses the place where the fault shows?",
                    "Wer benutzt die Stelle, an der sich der Fehler zeigt?",
                ),
                scene.id_of("Code"),
            )
    for place in best_places(scene, READS + 2)[READS:]:
        yield from read_wishes(scene, place)


def read_records(scene: Scene) -> list[tuple[Ranked, Record]]:
    """Return the read records with the ranked place each shows, in rank order."""
    found: list[tuple[Ranked, Record]] = []
    records = [r for r in scene.findings.of_kind("source", "config") if r.tool == "source.read"]
    for place in best_places(scene, RANK_LIMIT):
        for record in records:
            location = record.location
            if location.path != place.path or location.line_start is None or location.line_end is None:
                continue
            inside = place.line_start <= location.line_start <= location.line_end <= place.line_end
            if inside and record not in [r for _, r in found]:
                found.append((place, record))
    return found


def first_reads(scene: Scene) -> list[tuple[Ranked, Record]]:
    """Return for each read function the record that says most about the report, in rank order."""
    best: dict[int, tuple[Ranked, Record]] = {}
    for place, record in read_records(scene):
        kept = best.get(place.rank)
        if kept is None or _worth(scene, record) > _worth(scene, kept[1]):
            best[place.rank] = (place, record)
    return [best[rank] for rank in sorted(best)]


def _worth(scene: Scene, record: Record) -> float:
    return sum(sorted((score for score, _ in _scored(scene, record)), reverse=True)[:3])


def judge_code(scene: Scene) -> Judgement:
    """Judge the family Code from contradictions that were read, else from how the signals meet."""
    reads = first_reads(scene)
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
        direct=found.direct,
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
    signals = _signals(scene, place)
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


def _signals(scene: Scene, place: Ranked) -> str:
    strong = sorted(((value, name) for name, value in place.signals.items() if value >= 0.3), reverse=True)
    index = 1 if scene.case.german else 0
    words = [CLUES[name][index] for _, name in strong if name in CLUES] or [CLUES["text"][index]]
    return ", ".join(list(dict.fromkeys(words))[:4])


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


def _scored(scene: Scene, record: Record) -> list[tuple[float, int]]:
    """Return (score, line index) of the code lines: words shared with the report, deciding lines more."""
    words = {word.casefold()[:6] for word in _WORD.findall(scene.report_text())}
    scored: list[tuple[float, int]] = []
    quoting = False
    for number, line in enumerate(record.content.splitlines()):
        marks = line.count('"""') + line.count("'''")
        text = quoting or marks > 0
        quoting = quoting != (marks % 2 == 1)
        bare = line.strip()
        if text or number == 0 or len(bare) < 8 or bare.startswith(("#", "//", "*", "/*")):
            continue
        shared = len({word.casefold()[:6] for word in _WORD.findall(line)} & words)
        scored.append((shared + (1.5 if _STEP.match(line) else 0.0), number))
    return scored


def decisive_lines(scene: Scene, record: Record, count: int = 2) -> list[str]:
    """Return the deciding lines of a function that share most words with the report, in their order."""
    lines = record.content.splitlines()
    best = sorted(_scored(scene, record), key=lambda item: (-item[0], item[1]))[:count]
    return [lines[number].strip() for score, number in sorted(best, key=lambda item: item[1]) if score >= 1]


def framed_line(scene: Scene, record: Record) -> str:
    """Return the line of a record that the innermost matching stack frame of the report names."""
    first, lines = record.location.line_start or 1, record.content.splitlines()
    named = [n for n in frame_lines(scene, str(record.location.path)) if first <= n < first + len(lines)]
    return lines[named[-1] - first].strip() if named else ""


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
    frame = line_quote(record, framed_line(scene, record))
    if frame:
        deciding = (
            say(
                scene,
                f" The report's traceback passes through {frame}.",
                f" Der Aufrufstapel des Berichts geht durch {frame}.",
            )
            + deciding
        )
    return say(
        scene,
        f"{name} is where the clues of the report meet ({signals}).{deciding} That this decision is wrong "
        "rests on the behaviour the report expects.",
        f"In {name} treffen die Hinweise des Berichts zusammen ({signals}).{deciding} Dass die Entscheidung "
        "falsch ist, beruht auf dem Verhalten, das der Bericht erwartet.",
    )


def judge_upstream(scene: Scene) -> Judgement:
    """Judge the family Upstream: what lies behind the first place stays open unless the first is a lead."""
    reads = first_reads(scene)
    references = [r for look in scene.findings.by("source.references") for r in look.records if r.usable]
    if not references and len(reads) < READS + 1:
        reason = say(scene, "No caller was looked at.", "Kein Aufrufer wurde angesehen.")
        return Judgement("neutral", Confidence.UNASSESSED, reason=reason)
    later = tuple(r for _, r in reads[READS:])
    tested = tuple(references[:2]) + later[:1]
    level = judge_code(scene).level
    if level.rank >= Confidence.SUPPORTED.rank and reads:
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
        min(Confidence.PLAUSIBLE, level, key=lambda item: item.rank) if later else Confidence.UNASSESSED,
        support=later,
        tested=tested,
        reason=say(
            scene,
            "Callers and lower ranked functions were looked at; nothing sets them apart from the first.",
            "Aufrufer und weiter hinten stehende Funktionen wurden angesehen; nichts hebt sie hervor.",
        ),
    )
