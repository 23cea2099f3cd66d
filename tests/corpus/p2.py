# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""P2: a registration overwritten. A hook takes the object of the one before it, so that one is lost.

The name in the table and the literal in the code agree; the only trace is a line at start-up, thousands of
lines before the test. Twin: the code is sound and the table names a hook that does not exist.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.corpus import logs
from tests.corpus.build import Draft, Setting, gold_place, quoted
from tests.corpus.town import hook_names

LOG_LINES = 12_000


def _report(setting: Setting, giver: int, hook: str, language: str) -> str:
    world, town = setting.world, setting.town
    w, name = world.words, town.giver_name(giver)
    kind = hook.split("_", maxsplit=1)[0]
    if language == "en":
        return f"""# {name} behaves like any other {w["giver"]}

## Current behaviour
{name} ({w["giver"]} {giver}) is a "{kind}" {w["giver"]} and ought to call out every few seconds. It does not; it hands out its
{w["task"]}s like a plain {w["giver"]}. Others with calls of their own work.

## Expected behaviour
The calls of `{hook}` are heard near {name}.

## Steps to reproduce
1. With {w["player"]} {town.player.name} ({town.player.id}) go to {name}.
2. Wait a minute or two.

## What I checked
The table names `{hook}` and the code has a hook `{hook}`, so both sides look right to me.
"""
    return f"""# {name} verhält sich wie jeder andere ({quoted(world.giver)})

## Ist-Zustand
{name} ({w["giver"]} {giver}) ist vom Typ „{kind}“ und müsste alle paar Sekunden rufen. Tut er nicht, er verteilt nur seine
{world.task.de_pl} wie alle. Andere mit eigenen Rufen funktionieren.

## Soll-Zustand
In der Nähe von {name} hört man die Rufe von `{hook}`.

## Schritte
1. Mit {town.player.name} ({quoted(world.player)} {town.player.id}) zu {name} gehen.
2. Ein, zwei Minuten warten.

## Schon geprüft
In der Tabelle steht `{hook}` und im Code gibt es `{hook}`, beide Seiten sehen für mich richtig aus.
"""


def draft(setting: Setting, language: str, *, twin: bool) -> Draft:
    """Draft the case or its twin."""
    world, town = setting.world, setting.town
    rng = world.rng("overwritten")
    names = hook_names(world)
    lost = rng.randrange(len(names) - 1)
    hook, thief = names[lost], names[lost + 1]
    giver = rng.choice([number for number, name in town.hooks if name == hook])
    result = Draft(
        "registration",
        f"{town.giver_name(giver)} behaves like any other",
        _report(setting, giver, hook, language),
        town,
    )
    if twin:
        wrong = hook.replace("_", "__")
        hooks = tuple((number, wrong if number == giver else name) for number, name in town.hooks)
        result.town = replace(town, hooks=hooks)
        result.places.append(gold_place(world, "binding", {"giver": giver}, "script"))
    else:
        result.slots[f"reuse_{thief}"] = "bad"
        wrong = hook
    at = logs.moment(world)
    losing = [giver] if twin else [number for number, name in town.hooks if name == hook]
    complaint = (
        f"ERROR: hook '{wrong}' is named in {world.tables['binding']} and not known, a plain mind is used"
    )
    result.events += [logs.Event(at - timedelta(hours=4, minutes=59, seconds=50), complaint) for _ in losing]
    entered = f"{world.words['player']} {town.player.id} enters district {town.player.district}"
    result.events.append(logs.Event(at, entered))
    result.traffic = LOG_LINES
    return result
