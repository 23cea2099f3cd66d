# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""P5: one report, three truths.

A: a wrong comparison or order in the code; B: a configured value; C: the tester erred. Four rules of the
server are possible places; the seed picks one. The report of a seed is the same in A, B and C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.corpus import logs
from tests.corpus.build import Draft, Setting, quoted
from tests.corpus.town import Task


class Rule(NamedTuple):
    """What a rule's scenario says: title, what is seen, what is expected, how to get there; both languages."""

    title: tuple[str, str]
    seen: tuple[str, str]
    expected: tuple[str, str]
    steps: tuple[str, str]


class Scenario(NamedTuple):
    """A rule with its place in code and configuration, and what makes each variant true."""

    rule: Rule
    slot: str
    key: str
    wrong_value: str
    shape: Callable[[Draft, str], None]


def _refused(setting: Setting, task: Task, at: datetime, reason: int) -> logs.Event:
    w = setting.world.words
    number = setting.town.player.id
    return logs.Event(at, f"{w['task']} {task.id}: refused to {w['player']} {number}, reason {reason}")


def _limit(setting: Setting) -> Scenario:
    w, town, most = setting.world.words, setting.town, setting.limits["max_open"]
    rng = setting.world.rng("limit")
    others = rng.sample([task for task in town.tasks if task.id != town.hero.id], most)
    at, hero = logs.moment(setting.world), town.hero
    noun = quoted(setting.world.task)
    rule = Rule(
        (f"Cannot take {w['task']} number {most}", f"{noun} Nummer {most} wird nicht mehr vergeben"),
        (
            f'I carry {most - 1} {w["task"]}s. When I ask for one more, "{hero.name}" ({hero.id}), the server refuses: "You carry enough already".',
            f"Ich habe {most - 1} offene {setting.world.task.de_pl}. Wenn ich noch „{hero.name_de}“ ({hero.id}) annehmen will, lehnt der Server ab: „Du trägst schon genug“.",
        ),
        (
            f"{most} at a time are allowed, so this one should be given.",
            f"{most} gleichzeitig sind erlaubt, also müsste ich ihn bekommen.",
        ),
        (
            f'Take {most - 1} {w["task"]}s.\nAsk {town.giver_name(hero.giver)} for "{hero.name}".',
            f"{most - 1} {setting.world.task.de_pl} annehmen.\nBei {town.giver_name(hero.giver)} „{hero.name_de}“ annehmen.",
        ),
    )

    def shape(draft: Draft, variant: str) -> None:
        carried = others if variant == "C" else others[: most - 1]
        today = [(t, at - timedelta(minutes=9 * (i + 1))) for i, t in enumerate(others[: most - 1])]
        rows = [(town.player.id, task.id, f"{time:%Y-%m-%d %H:%M:%S}") for task, time in today]
        if variant == "C":
            rows.append((town.player.id, carried[-1].id, f"{at - timedelta(days=11):%Y-%m-%d %H:%M:%S}"))
        draft.town = replace(town, open_tasks=(*town.open_tasks, *rows))
        for task, time in today:
            draft.events += logs.taken(setting.world, task, town.player.id, time)[:1]
        draft.events.append(_refused(setting, hero, at, 2))

    return Scenario(rule, "limit", f"{w['Task']}.MaxOpen", str(most - 1), shape)


def _hours(setting: Setting) -> Scenario:
    w, town, opens = setting.world.words, setting.town, setting.limits["from"]
    hero, noon = town.hero, logs.moment(setting.world)
    giver = town.giver_name(hero.giver)
    at = noon.replace(hour=opens, minute=20)
    rule = Rule(
        (
            f"{w['giver']} still closed at {opens}:20",
            f"{quoted(setting.world.giver)} um {opens}:20 Uhr noch geschlossen",
        ),
        (
            f'At {opens}:20 in the morning {giver} does not hand out "{hero.name}" ({hero.id}): "We are closed".',
            f"Morgens um {opens}:20 Uhr gibt {giver} „{hero.name_de}“ ({hero.id}) nicht heraus: „Wir haben geschlossen“.",
        ),
        (f"Open from {opens}:00 on.", f"Ab {opens}:00 Uhr ist geöffnet."),
        (
            f'Wait until {opens}:20.\nAsk {giver} for "{hero.name}".',
            f"Bis {opens}:20 Uhr warten.\nBei {giver} „{hero.name_de}“ annehmen.",
        ),
    )

    def shape(draft: Draft, variant: str) -> None:
        then = at - timedelta(hours=1) if variant == "C" else at
        w_player = f"{w['player']} {town.player.id}"
        draft.events.append(
            logs.Event(
                then - timedelta(seconds=50),
                f"{w_player} enters, client clock {at:%H:%M}, server clock {then:%H:%M}",
            )
        )
        draft.events.append(_refused(setting, hero, then, 3))

    return Scenario(rule, "hours", f"{w['Giver']}.ServeFrom", str(opens + 1), shape)


def _standing(setting: Setting) -> Scenario:
    w, town, minimum = setting.world.words, setting.town, setting.limits["minimum"]
    hero, player = town.hero, town.player
    giver, at = town.giver_name(hero.giver), logs.moment(setting.world)
    rule = Rule(
        (
            f"{w['giver']} refuses in spite of enough {w['standing']}",
            f"{quoted(setting.world.giver)} lehnt trotz genug Ansehen ab",
        ),
        (
            f'With {minimum} {w["standing"]} {giver} refuses "{hero.name}" ({hero.id}): "I do not know you well enough".',
            f"Mit {minimum} Ansehen ({w['standing']}) lehnt {giver} „{hero.name_de}“ ({hero.id}) ab: „Ich kenne dich zu wenig“.",
        ),
        (
            f"{minimum} is what the rules ask for, so I should get it.",
            f"{minimum} verlangen die Regeln, also müsste ich ihn bekommen.",
        ),
        (
            f'Earn {w["standing"]} until it shows {minimum}.\nAsk {giver} for "{hero.name}".',
            f"Ansehen sammeln, bis {minimum} angezeigt wird.\nBei {giver} „{hero.name_de}“ annehmen.",
        ),
    )

    def shape(draft: Draft, variant: str) -> None:
        here = minimum - 20 if variant == "C" else minimum
        moved = player._replace(standing=here)
        draft.town = replace(
            town, player=moved, players=tuple(moved if p.id == player.id else p for p in town.players)
        )
        if variant == "C":
            draft.extra["state/screenshot_notes.txt"] = (
                f"panel shows: district 4, {w['standing']} {minimum}; {giver} stands in district 1\n".encode()
            )
        draft.events.append(_refused(setting, hero, at, 4))

    return Scenario(rule, "standing", f"{w['Giver']}.Minimum{w['Standing']}", str(minimum + 50), shape)


def _bonus(setting: Setting) -> Scenario:
    w, town, percent = setting.world.words, setting.town, setting.limits["bonus"]
    hero, at = town.hero, logs.moment(setting.world)
    more = hero.reward + hero.reward * percent // 100
    rule = Rule(
        ("No bonus for finishing in time", "Kein Zuschlag trotz rechtzeitigem Abschluss"),
        (
            f'I finish "{hero.name}" ({hero.id}) quickly and am paid {hero.reward} coins.',
            f"Ich schließe „{hero.name_de}“ ({hero.id}) zügig ab und bekomme {hero.reward} Münzen.",
        ),
        (
            f"{more} coins: {percent} percent on top when it is done within {hero.minutes} minutes.",
            f"{more} Münzen: {percent} Prozent Zuschlag, wenn man in {hero.minutes} Minuten fertig ist.",
        ),
        (
            f'Take "{hero.name}" from {town.giver_name(hero.giver)}.\nDo it within {hero.minutes} minutes.\nReport back and look at the purse.',
            f"„{hero.name_de}“ bei {town.giver_name(hero.giver)} annehmen.\nIn {hero.minutes} Minuten erledigen.\nZurückmelden, Münzen zählen.",
        ),
    )

    def shape(draft: Draft, variant: str) -> None:
        used = hero.minutes + 14 if variant == "C" else max(3, hero.minutes - 6)
        begun = at - timedelta(minutes=used)
        draft.events += logs.taken(setting.world, hero, town.player.id, begun)
        draft.events += logs.stages(setting.world, hero, town.player.id, begun, hero.stages)
        paid = f"{w['task']} {hero.id}: settled for {w['player']} {town.player.id}, paid {hero.reward}"
        draft.events.append(logs.Event(at, paid))

    return Scenario(rule, "order", "Reward.BonusPercent", "0", shape)


SCENARIOS = (_limit, _hours, _standing, _bonus)

HEADINGS = {
    "en": ("Current behaviour", "Expected behaviour", "Steps to reproduce", "Environment"),
    "de": ("Aktuelles Verhalten", "Erwartetes Verhalten", "Schritte zum Nachstellen", "Umgebung"),
}
SURROUNDINGS = {
    "en": "{project}, revision as in meta.txt. {player} {name}, number {number}. Logs, tables and the configuration are attached.",
    "de": "{project}, Stand wie in meta.txt. {player} {name}, Nummer {number}. Logs, Tabellen und Konfiguration liegen bei.",
}


def _report(setting: Setting, rule: Rule, language: str) -> str:
    pick = 1 if language == "de" else 0
    seen, expected, steps, environment = HEADINGS[language]
    numbered = "\n".join(f"{i}. {step}" for i, step in enumerate(rule.steps[pick].split("\n"), 1))
    town, world = setting.town, setting.world
    around = SURROUNDINGS[language].format(
        project=world.words["project"],
        player=quoted(world.player) if pick else world.words["Player"],
        name=town.player.name,
        number=town.player.id,
    )
    return (
        f"# {rule.title[pick]}\n\n## {seen}\n{rule.seen[pick]}\n\n## {expected}\n{rule.expected[pick]}\n\n"
        f"## {steps}\n{numbered}\n\n## {environment}\n{around}\n"
    )


def draft(setting: Setting, language: str, variant: str) -> Draft:
    """Draft variant A, B or C."""
    scenario = SCENARIOS[setting.world.rng("scenario").randrange(len(SCENARIOS))](setting)
    rule = scenario.rule
    title = rule.title[1 if language == "de" else 0]
    result = Draft("code_or_configuration", title, _report(setting, rule, language), setting.town)
    # Enough for every rule but the one in question.
    rng = setting.world.rng("shape")
    player = setting.town.player
    if scenario.slot != "standing":
        raised = player._replace(standing=setting.limits["minimum"] + 90)
        others = tuple(raised if p.id == player.id else p for p in setting.town.players)
        setting = replace(setting, town=replace(setting.town, player=raised, players=others))
        scenario = next(make for make in SCENARIOS if make(setting).slot == scenario.slot)(setting)
        result.town = setting.town
    scenario.shape(result, variant)
    if variant == "A":
        result.slots[scenario.slot] = "bad"
    elif variant == "B":
        result.config[scenario.key] = scenario.wrong_value
        result.places.append({"config_key": scenario.key})
    else:
        result.verdict = "wrong_premise"
    result.config.setdefault("World.TickMs", str(rng.choice((50, 80, 120))))
    result.config.setdefault("Session.IdleSeconds", str(rng.choice((600, 1200))))
    result.log_encoding = "utf-16" if rng.random() < 0.2 else "utf-8"
    return result
