# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""P1: the later stage is missing. The task is taken, the first stages play, then nothing follows.

Sound version of the fault: the rows of one stage are absent while forty siblings have theirs. Twin: the rows
are there and the code does not let the stage begin. The tester suspects the hook; the extract of the hooks is
filtered and does not hold this giver.
"""

from __future__ import annotations

from datetime import timedelta

from tests.corpus import logs
from tests.corpus.build import Draft, Setting, gold_place, quoted
from tests.corpus.town import StepRow, Task, Town
from tests.corpus.vocab import World


def _report_en(world: World, town: Town, task: Task, stop: int, action: str) -> str:
    w, rng = world.words, world.rng("report")
    number = f" ({w['task']} {task.id})" if rng.random() < 0.85 else ""
    giver = town.giver_name(task.giver)
    return f"""# {w["Task"]} "{task.name}" stops half way

## Current behaviour
I take "{task.name}"{number} from {giver}. {giver} answers and the first part plays as it should. After {w["stage"]} {stop - 1}
("{action}" is the last thing one sees) nothing happens any more: no message, no error, {giver} just stands there.
The {w["task"]} stays open and is never credited.

## Expected behaviour
All {task.stages} {w["stage"]}s play one after the other and the {w["task"]} is credited at the end, as with every other {w["task"]}.

## Steps to reproduce
1. Log in with {w["player"]} {town.player.name} (number {town.player.id}).
2. Go to {giver} and take "{task.name}".
3. Wait until {w["stage"]} {stop - 1} is over, then wait another ten minutes.

## Environment
Server as in meta.txt, database imported the same day, no modules.

## My guess
Probably the hook for {giver} is not registered: I could not find it in the hook table I exported.
"""


def _report_de(world: World, town: Town, task: Task, stop: int, action: str) -> str:
    w, rng = world.words, world.rng("report")
    number = f" (Nr. {task.id})" if rng.random() < 0.85 else ""
    giver = town.giver_name(task.giver)
    return f"""# {quoted(world.task)} „{task.name_de}“ bleibt mittendrin stehen

## Ist-Verhalten
Ich nehme „{task.name_de}“{number} bei {giver} an. {giver} antwortet, der erste Teil läuft wie er soll. Nach Abschnitt {stop - 1}
(zuletzt sieht man „{action}“) passiert nichts mehr: keine Meldung, kein Fehler, {giver} steht nur noch da.
Es bleibt offen und wird nie gutgeschrieben.

## Soll-Verhalten
Alle {task.stages} Abschnitte laufen nacheinander ab und am Ende kommt die Gutschrift, so wie bei allen anderen auch.

## Schritte
1. Mit {town.player.name} (Nummer {town.player.id}, {quoted(world.player)}) einloggen.
2. Zu {giver} gehen und „{task.name_de}“ annehmen.
3. Warten, bis Abschnitt {stop - 1} vorbei ist, danach noch zehn Minuten warten.

## Umgebung
Server wie in meta.txt, Datenbank vom selben Tag, keine Module. Auf dem Server heißen die Abschnitte „{w["stage"]}“.

## Vermutung
Wahrscheinlich ist der Hook für {giver} nicht registriert: in der exportierten Hook-Tabelle finde ich ihn nicht.
"""


def _gated(rows: list[StepRow], proc: int, stage: int, gate: int, value: int) -> list[StepRow]:
    return [
        row._replace(gate=gate, gate_value=value) if (row.proc, row.stage) == (proc, stage) else row
        for row in rows
    ]


def draft(setting: Setting, language: str, *, twin: bool) -> Draft:
    """Draft the case or its twin."""
    world, town = setting.world, setting.town
    rng = world.rng("plant")
    task, player = town.hero, town.player
    stop = rng.randrange(3, task.stages + 1)
    gate = rng.randrange(1, 4)
    exact = {1: player.standing, 2: player.load, 3: player.company}[gate]
    rows = _gated(list(town.steps), task.proc, stop, gate, exact)
    if not twin:
        rows = [row for row in rows if (row.proc, row.stage) != (task.proc, stop)]
    town = town.with_steps(rows)
    last = [row for row in town.steps if (row.proc, row.stage) == (task.proc, stop - 1) and row.action < 7][
        -1
    ]
    action = world.actions[last.action - 1][1 if language == "de" else 0]
    make = _report_de if language == "de" else _report_en
    at = logs.moment(world)
    hero = next(i for i, (giver, _) in enumerate(town.hooks) if giver == task.giver)
    listed = [i for i in range(len(town.hooks)) if i != hero and world.rng("extract", i).random() < 0.5]
    numbers = ", ".join(str(town.hooks[i][0]) for i in listed)
    result = Draft(
        "later_stage", f"{world.words['task']} stops half way", make(world, town, task, stop, action), town
    )
    result.csv["binding"] = (f"{world.columns['giver']} IN ({numbers})", listed)
    result.events = logs.taken(world, task, player.id, at) + logs.stages(world, task, player.id, at, stop - 1)
    dropped = f"{world.words['task']} {task.id}: dropped by {world.words['player']} {player.id}"
    result.events.append(logs.Event(at + timedelta(minutes=12), dropped))
    if twin:
        result.slots[f"gate{gate}"] = "bad"
    else:
        result.places.append(gold_place(world, "step", {"proc": task.proc, "stage": stop}))
    return result
