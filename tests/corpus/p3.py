# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""P3: a mask written for another build. The numbers of goods differ by protocol level, under `#if`.

One row came from a database of level 4 while this server is built for level 3; the older dump has another
value. Twin: all rows are right, and the code shifts the numbers of old clients.
"""

from __future__ import annotations

from dataclasses import replace

from tests.corpus import logs
from tests.corpus.build import Draft, Setting, gold_place, quoted
from tests.corpus.sqldump import dump
from tests.corpus.town import Place, Town, tables_of

FIRST_MOVED = 2
"""Index of the first good whose number differs between the levels."""


def _report(setting: Setting, place: Place, good: int, language: str) -> str:
    world, town = setting.world, setting.town
    w, noun = world.words, world.goods[good]
    if language == "en":
        return f"""# {place.name} refuses {noun.en}

## Current behaviour
{place.name} ({w["place"]} {place.id}, grade {place.grade}) refuses {noun.en}. The mask in the newest dump looks sensible to me.

## Expected behaviour
Grade {place.grade} takes {noun.en}, so it is taken here.

## Steps to reproduce
1. With {w["player"]} {town.player.name} ({town.player.id}) bring {noun.en} to {place.name}.

## Environment
See meta.txt. Two dumps are attached, the older one from before the last import.
"""
    return f"""# {place.name} lehnt {quoted(noun)} ab

## Ist-Verhalten
{place.name} ({quoted(world.place)} {place.id}, Klasse {place.grade}) lehnt {quoted(noun)} ({noun.en}) ab. Die Maske im neuesten Dump sieht für mich vernünftig aus.

## Soll-Verhalten
Klasse {place.grade} nimmt {quoted(noun)} an, also auch hier.

## Schritte
1. Mit {town.player.name} ({quoted(world.player)} {town.player.id}) {quoted(noun)} zu {place.name} bringen.

## Umgebung
Siehe meta.txt. Zwei Dumps liegen bei, der ältere von vor dem letzten Import.
"""


def _level_four(goods: tuple[int, ...]) -> int:
    return sum(1 << (good if good < FIRST_MOVED else good + 1) for good in goods)


def _regraded(town: Town, grade: str, goods: tuple[int, ...]) -> Town:
    mask = sum(1 << good for good in goods)
    places = tuple(p._replace(mask=mask) if p.grade == grade else p for p in town.places)
    return replace(town, places=places, grades={**town.grades, grade: goods})


def draft(setting: Setting, language: str, *, twin: bool) -> Draft:
    """Draft the case or its twin."""
    world = setting.world
    rng = world.rng("versioned")
    grade = rng.choice(sorted(setting.town.grades))
    good = rng.randrange(FIRST_MOVED, 6)
    goods = (0, 1, good)
    sound = _regraded(setting.town, grade, goods)
    index = rng.choice([i for i, p in enumerate(sound.places) if p.grade == grade])
    right = sound.places[index]
    strange = right._replace(mask=_level_four(goods))
    now, before = (right, strange) if twin else (strange, right)
    town = replace(sound, places=tuple(now if i == index else p for i, p in enumerate(sound.places)))
    old = replace(sound, places=tuple(before if i == index else p for i, p in enumerate(sound.places)))
    title = f"{now.name} refuses {world.goods[good].en}"
    result = Draft("versioned_flag", title, _report(setting, now, good, language), town)
    result.slots["flags"] = "versioned"
    table = tables_of(world, old)["place"]
    result.extra["db/old/places.sql"] = dump([table], database="world", one_line=True, mariadb=False).encode()
    refused = f"{world.words['place']} {now.id}: goods {good + 1} of {world.words['player']} {town.player.id} not admitted"
    result.events.append(logs.Event(logs.moment(world), refused))
    if twin:
        result.slots["wire"] = "bad"
    else:
        result.places.append(gold_place(world, "place", {"place": now.id}, "mask"))
    return result
