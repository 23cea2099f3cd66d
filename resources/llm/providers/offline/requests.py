"""What to ask for when nothing is confirmed: the concrete things this case lacks."""

from __future__ import annotations

from collections.abc import Iterator

from resources.llm.providers.offline.code_family import READS, best_places, read_records
from resources.llm.providers.offline.data_family import incomplete, keyed_rows
from resources.llm.providers.offline.limits import best_reading
from resources.llm.providers.offline.printing import about, formats
from resources.llm.providers.offline.scene import Scene, quoted
from resources.llm.providers.offline.settings import in_force
from resources.llm.providers.offline.wording import line_quote, plain, say, subject

MOST = 4
LEAST = 2


def requests(scene: Scene) -> list[str]:
    """Return two to four requests, the most deciding first."""
    found = list(dict.fromkeys(text for text in _specific(scene) if text))
    for text in _general(scene):
        if len(found) >= LEAST:
            break
        if text not in found:
            found.append(text)
    return found[:MOST]


def things(scene: Scene) -> str:
    """Name the affected things by the numbers of the report, empty when it names none."""
    return ", ".join((scene.ids() or scene.numbers())[:2])


def _specific(scene: Scene) -> Iterator[str]:
    yield _table(scene)
    yield _setting(scene)
    yield _log(scene)
    yield _state(scene)


def _table(scene: Scene) -> str:
    open_row = incomplete(scene)
    if open_row is None:
        return ""
    key = ", ".join(quoted(f"{name}={value}") for name, value in sorted(open_row.missing.items()))
    return say(
        scene,
        f"Send the whole table {quoted(open_row.table)}, or say whether it holds a row with {key}: "
        "the shipped extract does not tell.",
        f"Bitte die ganze Tabelle {quoted(open_row.table)} senden oder sagen, ob sie eine Zeile mit "
        f"{key} hat: "
        "Der Auszug lässt das offen.",
    )


def _setting(scene: Scene) -> str:
    found = best_reading(scene, best_places(scene, READS))
    if found is None or found.force is not None or found.in_code is None:
        return ""
    default = f" ({found.default.value})" if found.default is not None else ""
    return say(
        scene,
        f"Send the configuration in force: is {quoted(found.name)} at its default{default} there?",
        f"Bitte die geltende Konfiguration senden: Steht {quoted(found.name)} dort auf der Vorgabe{default}?",
    )


def _log(scene: Scene) -> str:
    reads = [record for _, record in read_records(scene)[:READS]]
    lines = about(scene)
    name = things(scene)
    of = say(scene, f" of {name}", f" von {name}") if name else ""
    for record in reads[:1]:
        texts = [text for text in formats(record) if line_quote(record, text)]
        wanted = [text for text in texts if not any(text[:20] in line for _, line in lines)]
        if wanted and "diagnostics" in scene.case.roles:
            return say(
                scene,
                f"Send the log of the affected attempt{of} with a level that includes the lines "
                f"{line_quote(record, wanted[0])}: they show which way "
                f"{record.location.symbol or 'the code'} went.",
                f"Bitte das Protokoll des betroffenen Versuchs{of} senden, mit einer Stufe, die die Zeilen "
                f"{line_quote(record, wanted[0])} enthält: Sie zeigen den Weg durch "
                f"{record.location.symbol or 'den Code'}.",
            )
    if lines or "diagnostics" not in scene.case.roles:
        return ""
    topic = plain(subject(scene.case.title, 70))
    return say(
        scene,
        f"Send the server log from the start of the program to the failure{of} ({topic}), with the "
        f"time of the "
        "attempt.",
        f"Bitte das Serverprotokoll vom Programmstart bis zum Fehler{of} senden ({topic}), mit der "
        f"Uhrzeit des "
        "Versuchs.",
    )


def _state(scene: Scene) -> str:
    rows = keyed_rows(scene)
    if not rows or "diagnostics" not in scene.case.roles:
        return ""
    table, key = rows[0]
    shown = ", ".join(f"{name} {value}" for name, value in sorted(key.items()))
    return say(
        scene,
        f"Send the state of the affected item ({table} {shown}) before and after the attempt, and the "
        f"same of one "
        "that works.",
        f"Bitte den Zustand des betroffenen Gegenstands ({table} {shown}) vor und nach dem Versuch "
        f"senden, und "
        "denselben von einem, bei dem es geht.",
    )


def _general(scene: Scene) -> Iterator[str]:
    missing = {str(item) for item in scene.interpretation.get("missing_information", [])}
    topic = plain(subject(scene.case.title, 70)) or say(scene, "this report", "diesen Bericht")
    name = things(scene)
    if not name and "diagnostics" in scene.case.roles:
        yield say(
            scene,
            f"Name the exact object, its id and the time of one occurrence of: {topic}.",
            f"Bitte für ein einzelnes Auftreten den genauen Gegenstand, seine Nummer und die Uhrzeit "
            f"nennen: {topic}.",
        )
    first = next(iter(read_records(scene)), None)
    if first is not None and not scene.case.german:
        yield (
            f"Send the smallest input with which it fails and one with which it works, and the values "
            f"with which "
            f"{quoted(first[0].symbol or first[0].path)} is called in both."
        )
    elif first is not None:
        yield (
            "Bitte die kleinste Eingabe senden, mit der es fehlschlägt, und eine, mit der es geht, "
            "dazu die Werte, "
            f"mit denen {quoted(first[0].symbol or first[0].path)} beide Male aufgerufen wird."
        )
    if not in_force(scene) and any("onfig" in item or "log" in item.casefold() for item in missing):
        yield say(
            scene,
            "Send log and configuration of the affected run, from its start to the failure.",
            "Bitte Log und Konfiguration des betroffenen Laufs senden, vom Start bis zum Fehler.",
        )
    yield say(
        scene,
        f"Describe step by step one run in which it happens and one in which it does not: {topic}.",
        f"Bitte Schritt für Schritt einen Lauf beschreiben, in dem es auftritt, und einen, in dem "
        f"nicht: {topic}.",
    )
    yield say(
        scene,
        "Send the version of the program and of its data, and what was changed since it last worked.",
        "Bitte die Version des Programms und der Daten nennen und was seit dem letzten Funktionieren "
        "geändert wurde.",
    )
