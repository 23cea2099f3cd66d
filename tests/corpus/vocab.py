"""The words of one generated world: theme, class and table names, ids. All of it follows from the seed."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Noun(NamedTuple):
    """One word of a theme; `de` carries its article in the nominative, `de_pl` is the bare plural."""

    en: str
    de: str
    de_pl: str


class Theme(NamedTuple):
    """A setting; two themes share no noun."""

    project: Sequence[str]
    task: Sequence[Noun]
    giver: Sequence[Noun]
    player: Sequence[Noun]
    place: Sequence[Noun]
    thing: Sequence[Noun]
    goods: Sequence[Noun]
    actions: Sequence[str]
    actions_de: Sequence[str]


HARBOUR = Theme(
    project=("Tidewater", "Quayside", "Leeward", "Saltmarsh"),
    task=(
        Noun("contract", "der Frachtvertrag", "Frachtverträge"),
        Noun("charter", "die Charter", "Chartern"),
    ),
    giver=(Noun("pilot", "der Lotse", "Lotsen"), Noun("broker", "der Makler", "Makler")),
    player=(Noun("captain", "der Kapitän", "Kapitäne"), Noun("skipper", "der Schiffer", "Schiffer")),
    place=(Noun("berth", "der Liegeplatz", "Liegeplätze"), Noun("quay", "der Kai", "Kais")),
    thing=(Noun("barge", "der Leichter", "Leichter"), Noun("lighter", "die Schute", "Schuten")),
    goods=(
        Noun("timber", "das Holz", "Hölzer"),
        Noun("grain", "das Getreide", "Getreide"),
        Noun("ore", "das Erz", "Erze"),
        Noun("livestock", "das Vieh", "Vieh"),
        Noun("fuel", "der Brennstoff", "Brennstoffe"),
        Noun("salt", "das Salz", "Salze"),
        Noun("wool", "die Wolle", "Wollen"),
    ),
    actions=("hail", "cast off", "sound the horn", "moor", "unload the hold", "hand over the seal"),
    actions_de=("anrufen", "ablegen", "das Horn geben", "festmachen", "löschen", "das Siegel übergeben"),
)
CARAVAN = Theme(
    project=("Dunewind", "Saffron Road", "Ashgate", "Lanternpass"),
    task=(Noun("errand", "der Botengang", "Botengänge"), Noun("commission", "der Auftrag", "Aufträge")),
    giver=(Noun("herald", "der Herold", "Herolde"), Noun("steward", "der Verwalter", "Verwalter")),
    player=(Noun("wanderer", "der Wanderer", "Wanderer"), Noun("drover", "der Treiber", "Treiber")),
    place=(Noun("camp", "das Lager", "Lager"), Noun("stall", "der Stand", "Stände")),
    thing=(Noun("cart", "der Karren", "Karren"), Noun("litter", "die Sänfte", "Sänften")),
    goods=(
        Noun("spice", "das Gewürz", "Gewürze"),
        Noun("silk", "die Seide", "Seiden"),
        Noun("glass", "das Glas", "Gläser"),
        Noun("incense", "der Weihrauch", "Weihrauch"),
        Noun("copper", "das Kupfer", "Kupfer"),
        Noun("dates", "die Datteln", "Datteln"),
        Noun("indigo", "der Indigo", "Indigo"),
    ),
    actions=(
        "greet",
        "fold the tent",
        "light the lantern",
        "cross the ford",
        "weigh the load",
        "seal the letter",
    ),
    actions_de=(
        "grüßen",
        "das Zelt falten",
        "die Laterne zünden",
        "die Furt queren",
        "die Last wiegen",
        "siegeln",
    ),
)
MINE = Theme(
    project=("Deepgallery", "Firedamp Hall", "Ninth Shaft", "Coppermount"),
    task=(Noun("shift", "die Schicht", "Schichten"), Noun("job", "die Arbeit", "Arbeiten")),
    giver=(Noun("foreman", "der Steiger", "Steiger"), Noun("overseer", "der Aufseher", "Aufseher")),
    player=(Noun("miner", "der Hauer", "Hauer"), Noun("delver", "der Gräber", "Gräber")),
    place=(Noun("gallery", "die Strecke", "Strecken"), Noun("shaft", "der Schacht", "Schächte")),
    thing=(Noun("tub", "der Hunt", "Hunte"), Noun("hoist", "der Haspel", "Haspeln")),
    goods=(
        Noun("coal", "die Kohle", "Kohlen"),
        Noun("slate", "der Schiefer", "Schiefer"),
        Noun("quartz", "der Quarz", "Quarze"),
        Noun("gypsum", "der Gips", "Gipse"),
        Noun("props", "das Grubenholz", "Grubenhölzer"),
        Noun("lamps", "die Lampen", "Lampen"),
        Noun("powder", "das Pulver", "Pulver"),
    ),
    actions=(
        "ring the bell",
        "lower the cage",
        "prop the roof",
        "fill the tub",
        "check the air",
        "sign the board",
    ),
    actions_de=("läuten", "den Korb senken", "abstützen", "den Hunt füllen", "die Luft prüfen", "abzeichnen"),
)
THEMES = (HARBOUR, CARAVAN, MINE)

SYLLABLES = (
    "ar",
    "bel",
    "cor",
    "dun",
    "el",
    "fen",
    "gar",
    "hol",
    "is",
    "jor",
    "kel",
    "lun",
    "mar",
    "nor",
    "os",
)
ENDINGS = ("a", "en", "ik", "wyn", "o", "ard", "is", "une", "ett", "mar")
UMLAUT_NAMES = ("Jörn", "Käthe", "Günther", "Möwe", "Ünal", "Bärbel", "Björk", "Söhnke")

STEMS: Mapping[str, Sequence[str]] = {
    "proc": ("procedure", "sequence", "script", "course"),
    "step": ("step", "move", "cue", "act"),
    "stage": ("stage", "leg", "phase", "part"),
    "Runner": ("Runner", "Conductor", "Executor", "Performer"),
    "Store": ("Store", "Catalogue", "Repository", "Library"),
    "Mind": ("Mind", "Behaviour", "Brain", "Agent"),
    "Book": ("Book", "Ledger", "Journal", "Folder"),
    "Gate": ("Gate", "Guard", "Condition", "Requirement"),
    "Access": ("Access", "Admission", "Permit", "Entry"),
    "Registry": ("Registry", "Directory", "Roster", "Index"),
    "Settings": ("Settings", "Options", "Config", "Parameters"),
    "Enter": ("Enter", "Begin", "Open", "Start"),
    "Advance": ("Advance", "Proceed", "Continue", "Next"),
    "Passes": ("Passes", "Holds", "Allows", "IsMet"),
    "Accept": ("Accept", "Take", "Undertake", "SignFor"),
    "CanOpen": ("CanTake", "MayTake", "CheckTake", "MayAdd"),
    "Admits": ("Admits", "Permits", "Welcomes", "Receives"),
    "Settle": ("Settle", "PayOut", "Close", "Reckon"),
    "IsOpen": ("IsOpen", "Serves", "Attends", "OnDuty"),
    "Meets": ("Meets", "Suffices", "Qualifies", "Reaches"),
    "Release": ("Release", "Dismiss", "LetGo", "PutAway"),
    "standing": ("standing", "renown", "trust", "merit"),
    "src": ("src", "server", "source/server", "game"),
    "ext": ("cpp", "cpp", "cc"),
}
ID_FORMS = ("{}_id", "{}_no", "{}_ref", "id_{}")
TABLE_FORMS = ("{}", "{}s", "t_{}", "world_{}")


def camel(words: str) -> str:
    """Return `snake or spaced words` as CamelCase."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[\s_]+", words) if part)


def lower_first(word: str) -> str:
    """Return the word with its first letter in lower case."""
    return word[:1].lower() + word[1:]


def draw(seed: int, *purpose: object) -> random.Random:
    """Return a stream of its own for one purpose, so that a change in one place shifts no other."""
    return random.Random(":".join(str(part) for part in (seed, *purpose)))


def person(rng: random.Random, *, german: bool = False) -> str:
    """Make a person's name."""
    first = "".join(rng.sample(SYLLABLES, 2)) + rng.choice(ENDINGS)
    last = "".join(rng.sample(SYLLABLES, 2)) + rng.choice(ENDINGS)
    given = rng.choice(UMLAUT_NAMES) if german else first.capitalize()
    return f"{given} {last.capitalize()}"


@dataclass(frozen=True)
class World:
    """Words and ids of one world. `words` are the tokens the source templates use."""

    seed: int
    family: str
    theme: Theme
    task: Noun
    giver: Noun
    player: Noun
    place: Noun
    thing: Noun
    goods: tuple[Noun, ...]
    words: Mapping[str, str]
    tables: Mapping[str, str]
    columns: Mapping[str, str]
    actions: tuple[tuple[str, str], ...]
    extra: Mapping[str, str] = field(default_factory=dict)

    def rng(self, *purpose: object) -> random.Random:
        """Return the stream of one purpose."""
        return draw(self.seed, self.family, *purpose)

    def path(self, *parts: str) -> str:
        """Return a source path below the server's folder."""
        return "/".join((self.words["src"], *parts))


def _table_names(rng: random.Random, words: Mapping[str, str]) -> dict[str, str]:
    form = rng.choice(TABLE_FORMS)
    plain = {
        "task": words["task"],
        "task_name": f"{words['task']}_name",
        "giver": words["giver"],
        "binding": f"{words['giver']}_{rng.choice(('hook', 'binding', 'handler', 'link'))}",
        "step": f"{words['proc']}_{words['step']}",
        "place": words["place"],
        "thing": f"{words['thing']}_model",
        "player": words["player"],
        "open_task": f"{words['player']}_{words['task']}",
        "standing": f"{words['player']}_{words['standing']}",
    }
    return {name: form.format(table) for name, table in plain.items()}


def _column_names(rng: random.Random, words: Mapping[str, str]) -> dict[str, str]:
    form = rng.choice(ID_FORMS)
    return {
        "task": form.format(words["task"]),
        "giver": form.format(words["giver"]),
        "proc": form.format(words["proc"]),
        "place": form.format(words["place"]),
        "thing": form.format(words["thing"]),
        "player": form.format(words["player"]),
        "stage": rng.choice((words["stage"], f"{words['stage']}_no", f"{words['stage']}_nr")),
        "seq": rng.choice(("seq", "pos", "ord", "rank_no")),
        "action": rng.choice(("action", "verb", "op", "kind")),
        "delay": rng.choice(("delay_ms", "wait_ms", "after_ms")),
        "count": rng.choice((f"{words['stage']}_count", f"n_{words['stage']}", f"last_{words['stage']}")),
        "mask": rng.choice(("admits", "goods_mask", "takes", "allowed")),
        "class": rng.choice(("class", "category", "grade")),
        "gate": rng.choice(("gate", "cond", "needs")),
        "gate_value": rng.choice(("gate_value", "cond_value", "needs_value")),
        "life": rng.choice(("life_s", "stay_s", "lifetime_s")),
        "script": rng.choice(("hook_name", "handler_name", "mind_name")),
    }


def make_world(seed: int, family: str) -> World:
    """Draw the world of a seed and family."""
    rng = draw(seed, family, "world")
    theme = THEMES[rng.randrange(len(THEMES))]
    task, giver, player = rng.choice(theme.task), rng.choice(theme.giver), rng.choice(theme.player)
    place, thing = rng.choice(theme.place), rng.choice(theme.thing)
    goods = tuple(rng.sample(theme.goods, len(theme.goods)))
    words = {name: rng.choice(choices) for name, choices in STEMS.items()}
    words["project"] = rng.choice(theme.project)
    words["ns"] = words["project"].split(" ", maxsplit=1)[0].lower()
    for name, noun in (
        ("task", task),
        ("giver", giver),
        ("player", player),
        ("place", place),
        ("thing", thing),
    ):
        words[name] = noun.en
        words[name.capitalize()] = camel(noun.en)
    for name in ("proc", "step", "stage", "standing"):
        words[name.capitalize()] = camel(words[name])
    tables, columns = _table_names(rng, words), _column_names(rng, words)
    words |= {f"t_{name}": table for name, table in tables.items()}
    words |= {f"c_{name}": column for name, column in columns.items()}
    for index, noun in enumerate(goods):
        words[f"G{index}"] = noun.en.upper()
        words[f"g{index}"] = noun.en
    order = rng.sample(range(len(theme.actions)), len(theme.actions))
    actions = tuple((theme.actions[i], theme.actions_de[i]) for i in order)
    for index, (english, _) in enumerate(actions):
        words[f"A{index}"] = re.sub(r"\W+", "_", english).upper()
    return World(
        seed, family, theme, task, giver, player, place, thing, goods, words, tables, columns, actions
    )
