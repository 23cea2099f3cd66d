# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""P6: an expectation and missing facts.

A: intended, the tester's SQL is wrong; B: the mask is wrong; C: nothing to go by.

A and B share source and report; only the row differs. C has neither log nor state; its twin has both.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from datetime import timedelta

from tests.corpus import logs
from tests.corpus.build import Draft, Setting, gold_place, quoted
from tests.corpus.town import Place

NUMBER_OF_GOODS = 6


def _place_text(setting: Setting, place: Place, good: int, language: str) -> str:
    world, town = setting.world, setting.town
    w, noun = world.words, world.goods[good]
    sql = f"UPDATE `{w['t_place']}` SET `{w['c_mask']}` = `{w['c_mask']}` | {1 << good} WHERE `{w['c_place']}` = {place.id};"
    thing = noun.de.split(" ", 1)[1]
    if language == "en":
        return f"""# {place.name} does not take {noun.en}

## Current behaviour
At {place.name} ({w["place"]} {place.id}) {noun.en} is refused: "not here". Other goods are taken.

## Expected behaviour
{noun.en.capitalize()} should be taken there as well. Next door it works.

## Steps to reproduce
1. With {town.player.name} ({w["player"]} {town.player.id}) load {noun.en}.
2. Go to {place.name} and deliver.

## Proposed fix
I think the flag was forgotten. This should do:

```sql
{sql}
```
"""
    return f"""# {place.name} nimmt {thing} nicht an

## Ist
Bei {place.name} ({quoted(world.place)} Nr. {place.id}) wird {thing} ({noun.en}) abgelehnt: „hier nicht“. Andere Waren gehen.

## Soll
{thing} müsste dort auch angenommen werden. Nebenan geht es.

## Schritte
1. Mit {town.player.name} ({quoted(world.player)} Nr. {town.player.id}) {thing} laden.
2. Zu {place.name} fahren und abliefern.

## Vorschlag
Ich glaube, das Flag wurde vergessen. Das müsste reichen:

```sql
{sql}
```
"""


def _mask_case(setting: Setting, language: str, *, intended: bool) -> Draft:
    world, town = setting.world, setting.town
    rng = world.rng("mask")
    grade_with, grade_without, good = _grades(setting)
    index = rng.choice([i for i, p in enumerate(town.places) if p.grade in {grade_with, grade_without}])
    old = town.places[index]
    right = sum(1 << g for g in town.grades[grade_with])
    if intended:
        place = old._replace(grade=grade_without, mask=sum(1 << g for g in town.grades[grade_without]))
    else:
        absent = [g for g in range(NUMBER_OF_GOODS) if not right & (1 << g)]
        other = rng.choice(absent)
        place = old._replace(grade=grade_with, mask=right & ~(1 << good) | (1 << other))
    places = tuple(place if i == index else p for i, p in enumerate(town.places))
    w = world.words
    result = Draft(
        "expectation",
        f"{w['place']} does not take {world.goods[good].en}",
        _place_text(setting, place, good, language),
        replace(town, places=places),
    )
    result.words["change_grade"] = (
        f"{w['Place']}s of grade {grade_without} no longer take {world.goods[good].en}: it was never meant, see docs/rules.md."
    )
    refused = f"{w['place']} {place.id}: goods {good + 1} of {w['player']} {town.player.id} not admitted"
    result.events.append(logs.Event(logs.moment(world), refused))
    if language == "de":
        result.extra["notes/tester.txt"] = (
            f"Prüfung für {place.name}: zweimal versucht, gleiches Ergebnis. Grüße\n".encode("cp1252")
        )
    if intended:
        result.verdict = "intended_behaviour"
    else:
        result.places.append(gold_place(world, "place", {"place": place.id}, "mask"))
    return result


def _grades(setting: Setting) -> tuple[str, str, int]:
    """Return a grade that takes some good, one that does not, and the good."""
    grades = setting.town.grades
    found = [
        (a, b, good)
        for a in sorted(grades)
        for b in sorted(grades)
        for good in range(NUMBER_OF_GOODS)
        if good in grades[a] and good not in grades[b]
    ]
    return setting.world.rng("grades").choice(found)


def _png(setting: Setting) -> bytes:
    """Return a small grey picture: a photograph of a screen that shows nothing readable."""
    rng = setting.world.rng("png")
    width, height = 48, 27
    raw = b"".join(b"\0" + bytes(rng.randrange(90, 140) for _ in range(width)) for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(raw, 0))
        + chunk(b"IEND", b"")
    )


VAGUE = {
    "en": """# Server goes down now and then

## Current behaviour
Since last week the server goes down now and then, sometimes twice an evening. Some {things} also seem to vanish before.
A picture of the screen is attached, sadly one cannot read much on it.

## Expected behaviour
It stays up.

## Steps to reproduce
Unknown. It happens when many people are on, I believe.

## Environment
See meta.txt.
""",
    "de": """# Server stürzt ab und zu ab

## Ist-Verhalten
Seit letzter Woche stürzt der Server ab und zu ab, manchmal zweimal am Abend. Einige {things_de} ({things}) scheinen vorher zu verschwinden.
Ein Foto vom Bildschirm liegt bei, leider kann man darauf kaum etwas lesen.

## Soll-Verhalten
Er läuft durch.

## Schritte
Unbekannt. Ich glaube, es passiert, wenn viele online sind.

## Umgebung
Siehe meta.txt.
""",
}


def _vague_case(setting: Setting, language: str, *, known: bool) -> Draft:
    world, town = setting.world, setting.town
    w, rng = world.words, world.rng("crash")
    text = VAGUE[language].format(things=f"{w['thing']}s", things_de=world.thing.de_pl)
    result = Draft("missing_facts", "the server goes down now and then", text, town)
    result.extra["media/screen.png"] = _png(setting)
    result.with_logs = result.with_state = result.with_tables = known
    if not known:
        result.verdict = "insufficient_information"
        result.config["Log.Level"] = "0"
        return result
    result.slots["null"] = "bad"
    at = logs.moment(world)
    path = f"{w['src']}/world/{w['Thing']}Spawner.{w['ext']}"
    name = f"{w['ns']}::{w['Thing']}Spawner::{w['Release']}"
    frames = [
        f"{w['ns']}::{w['Player']}::Notify(unsigned int) (this=0x0)",
        f"{name}(unsigned int) at {path}",
        f"{w['ns']}::World::Update(unsigned int)",
        "main",
    ]
    quits = f"{w['player']} {town.player.id} leaves, 1 {w['thing']} of it stays"
    result.events.append(logs.Event(at - timedelta(seconds=21), quits))
    for i, line in enumerate(["caught signal 11 (SIGSEGV), address 0x8", *logs.stack(frames, rng)]):
        result.events.append(logs.Event(at + timedelta(milliseconds=i), line if i == 0 else line.strip()))
    return result


def draft(setting: Setting, language: str, variant: str, *, twin: bool) -> Draft:
    """Draft variant A, B or C, or the twin of it."""
    if variant == "C":
        return _vague_case(setting, language, known=twin)
    return _mask_case(setting, language, intended=(variant == "A") != twin)
