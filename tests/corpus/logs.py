# ruff: noqa: E501  # generated texts keep the line breaks of the file they become
"""Server logs: start-up, traffic of other players, the events of the case, and the usual damage."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tests.corpus.noise import Subsystem
from tests.corpus.town import Task, Town
from tests.corpus.vocab import World


class Event(NamedTuple):
    """One line at a time."""

    at: datetime
    text: str


def moment(world: World) -> datetime:
    """Return the time at which the tester's last action happens (server clock)."""
    rng = world.rng("moment")
    return datetime(
        2031,
        rng.randrange(1, 13),
        rng.randrange(1, 28),
        rng.randrange(13, 20),
        rng.randrange(4, 50),
        7,
        tzinfo=UTC,
    )


def taken(world: World, task: Task, player: int, at: datetime) -> list[Event]:
    """Return the lines of a task being taken."""
    w = world.words
    return [
        Event(at, f"{w['task']} {task.id}: taken by {w['player']} {player} from {w['giver']} {task.giver}"),
        Event(at, f"{w['giver']} {task.giver}: plays {w['proc']} {task.proc} for {w['player']} {player}"),
    ]


def stages(
    world: World, task: Task, player: int, at: datetime, last: int, longer: Mapping[int, int] | None = None
) -> list[Event]:
    """Return the lines of the stages 1 to `last`; `longer` adds seconds to a stage."""
    w, rng = world.words, world.rng("stages", task.id, player)
    events: list[Event] = []
    for stage in range(1, last + 1):
        head = f"{w['proc']} {task.proc}: {w['stage']} {stage} of {task.stages}"
        events.append(Event(at, f"{head} begins for {w['player']} {player}"))
        at += timedelta(seconds=rng.randrange(3, 19) + (longer or {}).get(stage, 0))
        events.append(Event(at, f"{head} done for {w['player']} {player}"))
    if last == task.stages:
        events.append(Event(at, f"{w['proc']} {task.proc}: finished for {w['player']} {player}"))
    return events


def start_up(world: World, town: Town, subsystems: Sequence[Subsystem], at: datetime) -> list[Event]:
    """Return the lines of a start: what was loaded, and true complaints beside the case."""
    rng = world.rng("start-up")
    t, w = world.tables, world.words
    lines = [f">> loaded {rng.randrange(20, 300)} rows of {s.table}" for s in subsystems]
    lines += [
        f">> loaded {len(town.tasks)} rows of {t['task']}",
        f">> loaded {len(town.places)} rows of {t['place']}",
    ]
    lines.append(f">> loaded {len(town.steps)} rows of {t['step']}")
    for subsystem in rng.sample(list(subsystems), 4):
        number = rng.randrange(200, 900)
        lines.append(
            f"ERROR: table {subsystem.table}: row {number} names a missing {rng.choice(subsystem.fields)}, skipped"
        )
    rng.shuffle(lines)
    lines = ["settings read from etc/" + w["ns"] + ".conf", *lines, "world is up"]
    return [Event(at + timedelta(milliseconds=40 * i), line) for i, line in enumerate(lines)]


def traffic(world: World, town: Town, until: datetime, count: int) -> list[Event]:
    """Return what other players do in the hours before `until`: whole tasks, and small talk."""
    rng = world.rng("traffic")
    others = [p for p in town.players if p.id != town.player.id]
    events: list[Event] = []
    for task in rng.sample([x for x in town.tasks if x.id != town.hero.id], 12):
        player = rng.choice(others).id
        at = until - timedelta(seconds=rng.randrange(400, 14000))
        events += taken(world, task, player, at)
        events += stages(world, task, player, at, task.stages)
    kinds = (
        "session {a} idle for {b} s",
        "packet 0x{b:03X} from session {a}",
        "weather in district {c} changes to {d}",
        "saved {w} {a} in {d} ms",
        "market: lot {b} sold for {a}",
        "tick took {d} ms",
    )
    for _ in range(count):
        at = until - timedelta(seconds=rng.randrange(-300, 14000))
        text = rng.choice(kinds).format(
            a=rng.choice(others).id,
            b=rng.randrange(16, 900),
            c=rng.randrange(1, 6),
            d=rng.randrange(1, 60),
            w=world.words["player"],
        )
        events.append(Event(at, text))
    return events


def text_of(events: Sequence[Event], *, cut: bool = False) -> str:
    """Return the events in the order of time; `cut` ends the last line in its middle."""
    lines = [f"{e.at:%Y-%m-%d %H:%M:%S} {e.text}" for e in sorted(events, key=lambda e: e.at)]
    text = "\n".join(lines) + "\n"
    return text[: -len(lines[-1]) // 2] if cut else text


def stack(frames: Sequence[str], rng: random.Random) -> list[str]:
    """Return a stack trace's lines."""
    return [f"  #{i} 0x{rng.randrange(1 << 40):012x} in {frame}" for i, frame in enumerate(frames)]
