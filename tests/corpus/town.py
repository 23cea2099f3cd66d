# generated texts keep the line breaks of the file they become
"""The data of one world: people, tasks, stages, places; sound unless a family plants something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.corpus.sqldump import Column, Table, Value
from tests.corpus.vocab import World, camel, person

NOUNS_EN = [
    "letter",
    "seal",
    "lantern",
    "crate",
    "ribbon",
    "ledger",
    "anchor",
    "kettle",
    "drum",
    "mirror",
    "casket",
    "lute",
    "basket",
    "candle",
    "horn",
]
NOUNS_DE = [
    "Brief",
    "Siegel",
    "Laterne",
    "Kiste",
    "Band",
    "Kladde",
    "Anker",
    "Kessel",
    "Trommel",
    "Spiegel",
    "Truhe",
    "Laute",
    "Korb",
    "Kerze",
    "Horn",
]
QUALITIES_EN = [
    "late",
    "lost",
    "heavy",
    "sealed",
    "silent",
    "borrowed",
    "broken",
    "seventh",
    "northern",
    "wet",
]
QUALITIES_DE = [
    "spät",
    "verloren",
    "schwer",
    "versiegelt",
    "still",
    "geliehen",
    "zerbrochen",
    "siebt",
    "nördlich",
    "nass",
]
GRADES = "ABCD"


class Task(NamedTuple):
    """One task: ids, name in both languages, number of stages, reward in coins, minutes."""

    id: int
    giver: int
    proc: int
    name: str
    name_de: str
    stages: int
    reward: int
    minutes: int


class StepRow(NamedTuple):
    """One step: `gate` and `gate_value` are the same in all steps of a stage."""

    proc: int
    stage: int
    seq: int
    action: int
    value: int
    delay: int
    gate: int
    gate_value: int


class Place(NamedTuple):
    """One place with its grade and mask of goods."""

    id: int
    name: str
    grade: str
    mask: int


class Player(NamedTuple):
    """One player: district, standing there, load aboard, company with oneself."""

    id: int
    name: str
    district: int
    standing: int
    load: int
    company: int


@dataclass(frozen=True)
class Town:
    """All data. `hero` and `player` are the task and the player of the report."""

    tasks: tuple[Task, ...]
    steps: tuple[StepRow, ...]
    givers: tuple[tuple[int, str, int], ...]
    hooks: tuple[tuple[int, str], ...]
    places: tuple[Place, ...]
    things: tuple[tuple[int, int, str], ...]
    players: tuple[Player, ...]
    open_tasks: tuple[tuple[int, int, str], ...]
    hero: Task
    player: Player
    grades: dict[str, tuple[int, ...]]

    def giver_name(self, giver: int) -> str:
        """Return the name of a giver."""
        return next(name for number, name, _ in self.givers if number == giver)

    def with_steps(self, steps: Sequence[StepRow]) -> Town:
        """Return the town with other step rows, in key order."""
        return replace(self, steps=tuple(sorted(steps)))


def _tasks(world: World) -> tuple[tuple[Task, ...], tuple[tuple[int, str, int], ...]]:
    rng = world.rng("tasks")
    ids = sorted(rng.sample(range(200, 990), 41))
    procs = rng.sample(range(1200, 9800), 41)
    givers = [
        (number, person(rng), rng.randrange(1, 6)) for number in sorted(rng.sample(range(3000, 3900), 18))
    ]
    pairs = rng.sample([(q, n) for q in range(len(QUALITIES_EN)) for n in range(len(NOUNS_EN))], 41)
    tasks = [
        Task(
            number,
            rng.choice(givers)[0],
            proc,
            f"The {QUALITIES_EN[q]} {NOUNS_EN[n]}",
            f"{NOUNS_DE[n]}, {QUALITIES_DE[q]}",
            rng.randrange(4, 7),
            rng.randrange(4, 40) * 20,
            rng.randrange(2, 12) * 10,
        )
        for number, proc, (q, n) in zip(ids, procs, pairs, strict=True)
    ]
    return tuple(tasks), tuple(givers)


def _steps(world: World, tasks: Sequence[Task], things: Sequence[int], player: Player) -> list[StepRow]:
    rng = world.rng("steps")
    rows: list[StepRow] = []
    for task in tasks:
        for stage in range(1, task.stages + 1):
            gate = rng.choice((0, 0, 0, 1, 2, 3)) if stage > 1 else 0
            slack = rng.randrange(2, 9)
            value = (0, player.standing - slack * 10, player.load + slack, max(1, player.company - slack))[
                gate
            ]
            for seq in range(1, rng.randrange(2, 5)):
                action, delay = rng.randrange(1, 7), rng.randrange(1, 12) * 500
                rows.append(StepRow(task.proc, stage, seq, action, rng.randrange(1, 400), delay, gate, value))
    spawning = rng.sample(list(tasks), 6)
    for task in spawning:
        rows.append(StepRow(task.proc, 1, 8, 7, rng.choice(things), 500, 0, 0))
        rows.append(StepRow(task.proc, 1, 9, 8, rng.randrange(1, 400), rng.randrange(2, 6) * 1000, 0, 0))
    return rows


def _places(world: World) -> tuple[tuple[Place, ...], dict[str, tuple[int, ...]]]:
    """Every grade admits its own three or four goods; every place follows its grade."""
    rng = world.rng("places")
    grades = {grade: tuple(sorted(rng.sample(range(6), rng.randrange(3, 5)))) for grade in GRADES}
    names = rng.sample(range(100), 36)
    places = []
    for index, number in enumerate(sorted(rng.sample(range(11, 400), 36))):
        grade = GRADES[index % 4] if index < 8 else rng.choice(GRADES)
        mask = sum(1 << good for good in grades[grade])
        places.append(
            Place(number, f"{camel(world.place.en)} {person(rng).split()[1]} {names[index]}", grade, mask)
        )
    return tuple(places), grades


def _players(world: World, tasks: Sequence[Task]) -> tuple[tuple[Player, ...], list[tuple[int, int, str]]]:
    rng = world.rng("players")
    players = []
    for number in sorted(rng.sample(range(20, 900), 14)):
        standing, load = rng.randrange(45, 80) * 10, rng.randrange(1, 5)
        company = rng.randrange(2, 5)
        players.append(Player(number, person(rng, german=rng.random() < 0.3), 1, standing, load, company))
    opened = [(p.id, rng.choice(tasks).id, "2031-02-03 18:00:00") for p in players[1:9]]
    return tuple(players), opened


def make_town(world: World) -> Town:
    """Make the sound data of a world."""
    rng = world.rng("town")
    tasks, givers = _tasks(world)
    players, opened = _players(world, tasks)
    player = rng.choice(players)
    opened = [row for row in opened if row[0] != player.id]
    things = [
        (number, rng.randrange(30, 90), f"{world.thing.en} {i}") for i, number in enumerate(range(61, 75))
    ]
    hero = rng.choice([task for task in tasks if task.stages >= 5])
    steps = _steps(world, tasks, [number for number, _, _ in things], player)
    kinds = hook_names(world)
    hooks = tuple((number, kinds[index % len(kinds)]) for index, (number, _, _) in enumerate(givers))
    places, grades = _places(world)
    return Town(
        tasks,
        tuple(sorted(steps)),
        givers,
        hooks,
        places,
        tuple(things),
        players,
        tuple(opened),
        hero,
        player,
        grades,
    )


def hook_names(world: World) -> list[str]:
    """Return the names of the hooks that the server registers."""
    rng = world.rng("hooks")
    kinds = rng.sample(
        ("plain", "night", "gate", "hill", "river", "winter", "old", "young", "market", "guild"), 7
    )
    return [f"{kind}_{world.words['giver']}" for kind in kinds]


def _int(name: str) -> Column:
    return Column(name, "int unsigned NOT NULL")


def tables_of(world: World, town: Town) -> dict[str, Table]:
    """Return the tables of the kernel by their role."""
    t, c = world.tables, world.columns
    rng = world.rng("table values")
    names: list[tuple[Value, ...]] = []
    for task in town.tasks:
        names += [(task.id, "de", task.name_de), (task.id, "en", task.name)]
    specs: dict[str, tuple[list[Column], list[tuple[Value, ...]], tuple[str, ...]]] = {
        "task": (
            [
                _int(c["task"]),
                _int(c["giver"]),
                _int(c["proc"]),
                Column(c["count"], "tinyint unsigned NOT NULL DEFAULT '1'"),
                Column("reward", "int NOT NULL"),
                Column("minutes", "smallint NOT NULL"),
            ],
            [(x.id, x.giver, x.proc, x.stages, x.reward, x.minutes) for x in town.tasks],
            (c["task"],),
        ),
        "task_name": (
            [_int(c["task"]), Column("lang", "char(2) NOT NULL"), Column("name", "varchar(120) NOT NULL")],
            names,
            (c["task"], "lang"),
        ),
        "giver": (
            [
                _int(c["giver"]),
                Column("name", "varchar(80) NOT NULL"),
                _int("district"),
                Column("x", "float"),
                Column("y", "float"),
            ],
            [
                (n, name, d, round(rng.uniform(-900, 900), 2), round(rng.uniform(-900, 900), 2))
                for n, name, d in town.givers
            ],
            (c["giver"],),
        ),
        "binding": (
            [_int(c["giver"]), Column(c["script"], "varchar(40) NOT NULL")],
            list(town.hooks),
            (c["giver"],),
        ),
        "step": (
            [
                _int(c["proc"]),
                Column(c["stage"], "tinyint unsigned NOT NULL"),
                Column(c["seq"], "tinyint unsigned NOT NULL"),
                Column(c["action"], "tinyint unsigned NOT NULL"),
                _int("value"),
                _int(c["delay"]),
                Column(c["gate"], "tinyint unsigned NOT NULL DEFAULT '0'"),
                Column(c["gate_value"], "int NOT NULL DEFAULT '0'"),
            ],
            [tuple(row) for row in town.steps],
            (c["proc"], c["stage"], c["seq"]),
        ),
        "place": (
            [
                _int(c["place"]),
                Column("name", "varchar(80) NOT NULL"),
                Column(c["class"], "char(1) NOT NULL"),
                _int(c["mask"]),
            ],
            [(p.id, p.name, p.grade, p.mask) for p in town.places],
            (c["place"],),
        ),
        "thing": (
            [_int(c["thing"]), _int(c["life"]), Column("label", "varchar(60)")],
            list(town.things),
            (c["thing"],),
        ),
        "player": (
            [
                _int(c["player"]),
                Column("name", "varchar(60) NOT NULL"),
                Column("load_count", "int NOT NULL"),
                Column("company", "int NOT NULL"),
            ],
            [(p.id, p.name, p.load, p.company) for p in town.players],
            (c["player"],),
        ),
        "standing": (
            [_int(c["player"]), _int("district"), Column("points", "int NOT NULL")],
            [(p.id, p.district, p.standing) for p in town.players],
            (c["player"], "district"),
        ),
        "open_task": (
            [_int(c["player"]), _int(c["task"]), Column("since", "datetime NOT NULL")],
            sorted(town.open_tasks),
            (c["player"], c["task"]),
        ),
    }
    return {role: Table(t[role], columns, rows, key) for role, (columns, rows, key) in specs.items()}
