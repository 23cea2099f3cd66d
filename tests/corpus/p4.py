# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""P4: a delay loses against a lifetime. A step credits at a thing that is gone by then.

The rows are all present and each looks fine alone: only both times together are wrong. Twin: the times are
fine and the code takes the thing away too early.
"""

from __future__ import annotations

from dataclasses import replace

from tests.corpus import logs
from tests.corpus.build import Draft, Setting, gold_place, quoted
from tests.corpus.town import StepRow

SPAWN, CREDIT = 7, 8
"""Actions: place a thing; credit if it is still there."""

SPAWN_SEQ, CREDIT_SEQ = 8, 9
LATE_MS = 25_000
SHORT_S, LONG_S = 9, 40


def _report(setting: Setting, stage: int, language: str) -> str:
    world, town = setting.world, setting.town
    w, task = world.words, town.hero
    giver = town.giver_name(task.giver)
    if language == "en":
        return f"""# "{task.name}" never counts the {w["thing"]}

## Current behaviour
In {w["stage"]} {stage} of "{task.name}" ({w["task"]} {task.id}) a {w["thing"]} appears and goes away again. The counter for it stays at 0.
The rest plays to its end without a message.

## Expected behaviour
The counter goes to 1 at the {w["thing"]}.

## Steps to reproduce
1. With {w["player"]} {town.player.name} ({town.player.id}) take "{task.name}" from {giver}.
2. Watch {w["stage"]} {stage} and the counter.

## Notes
The steps are all in the database, I looked: the {w["thing"]} is placed and the credit step is there.
"""
    return f"""# „{task.name_de}“ zählt nicht ({quoted(world.thing)})

## Ist
In Abschnitt {stage} ({w["stage"]}) von „{task.name_de}“ ({task.id}) erscheint etwas ({quoted(world.thing)}, {w["thing"]}) und verschwindet wieder. Der Zähler dafür bleibt auf 0.
Der Rest läuft ohne Meldung bis zum Ende.

## Soll
Der Zähler geht auf 1.

## Schritte
1. Mit {town.player.name} ({quoted(world.player)} {town.player.id}) „{task.name_de}“ bei {giver} annehmen.
2. Abschnitt {stage} und den Zähler beobachten.

## Anmerkung
Die Schritte stehen alle in der Datenbank, ich habe nachgesehen: das Erscheinen und die Gutschrift sind da.
"""


def draft(setting: Setting, language: str, *, twin: bool) -> Draft:
    """Draft the case or its twin."""
    world, town = setting.world, setting.town
    rng = world.rng("race")
    task, player = town.hero, town.player
    stage = rng.randrange(2, task.stages)
    things = list(town.things)
    index = rng.randrange(len(things))
    model = things[index][0]
    things[index] = (model, LONG_S if twin else SHORT_S, things[index][2])
    # Nobody else uses this model, and the hero has no other thing.
    others = [x for i, (x, _, _) in enumerate(things) if i != index]
    steps = [
        row._replace(value=rng.choice(others)) if row.action == SPAWN and row.value == model else row
        for row in town.steps
        if row.proc != task.proc or row.action < SPAWN
    ]
    of_stage = next(row for row in steps if (row.proc, row.stage) == (task.proc, stage))
    common = (of_stage.gate, of_stage.gate_value)
    steps.append(StepRow(task.proc, stage, SPAWN_SEQ, SPAWN, model, 500, *common))
    steps.append(StepRow(task.proc, stage, CREDIT_SEQ, CREDIT, rng.randrange(1, 400), LATE_MS, *common))
    town = replace(town.with_steps(steps), things=tuple(things))
    result = Draft(
        "race", f"{world.words['thing']} is never counted", _report(setting, stage, language), town
    )
    at = logs.moment(world)
    result.events = logs.taken(world, task, player.id, at)
    result.events += logs.stages(world, task, player.id, at, task.stages, {stage: LATE_MS // 1000})
    if twin:
        result.slots["life"] = "bad"
    else:
        result.places.append(gold_place(world, "thing", {"thing": model}, "life"))
        key = {"proc": task.proc, "stage": stage, "seq": CREDIT_SEQ}
        result.places.append(gold_place(world, "step", key, "delay"))
    return result
