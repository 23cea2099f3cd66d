"""What the analyst takes for the number of a thing, and in which language it says what it looks for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from resources.llm.providers import offline
from resources.llm.providers.offline.families import outdone
from resources.llm.providers.offline.findings import Findings
from resources.llm.providers.offline.judging import _ruled_out
from resources.llm.providers.offline.scene import Judgement, Scene
from resources.llm.providers.offline.view import Case, Source
from tests.support.library_case import configuration, log, source
from tests.support.railway_case import diagnosed
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.common import read_json
from viano_assets.phases.wire import Confidence

FOLDER = Path(next(iter(offline.__path__)))
GERMAN = """# Buch 5127 wird abgelehnt

## Ist-Verhalten
Um 8:20 Uhr wird Leser 881 das Buch 5127 nicht ausgeliehen, obwohl die Frist 30 Tage ist.

## Soll-Verhalten
Das Buch wird ausgeliehen.

## Schritte
1. Um 10:00:00 das Buch 5127 mit Leser 881 ausleihen.
"""


def scene(text: str, language: str = "en") -> Scene:
    report = Source("S1", "observation", text, None, {})
    return Scene(Case("title", language, (report,), frozenset()), {}, [], Findings([]))


@pytest.mark.parametrize(
    "text",
    [
        "at 8:20",
        "between 10:00:00 and 23:59:59.250",
        "10:15:42,123 WARN",
        "on 2024-05-17",
        "since 05/17/2024 or 17-05-2024",
        "2024-05-17T10:20:30Z",
        "am 17.05.2024",
        "on 17 May 2024",
        "May 17th, 2024",
        "am 17. Mai 2024",
        "um 20 Uhr 15",
        "at 11 pm and at 12 o'clock",
        "version 12.34-56",
        "v10.20.30",
        "10.20.30.40:8080",
        "host 192.168.10.20",
    ],
)
def test_parts_of_times_dates_versions_and_addresses_are_no_ids(text: str) -> None:
    assert scene(text).numbers() == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("At 8:20 Jordan (737) is closed", ["737"]),
        ("crane 42: stuck at 10:00:00", ["42"]),
        ("order 4711.", ["4711"]),
        ("ids 12, 34 and 56", ["12", "34", "56"]),
        ("berth 17-18", ["17", "18"]),
        ("see line:300", ["300"]),
        ("may 4711 be late?", ["4711"]),
    ],
)
def test_numbers_of_things_stay(text: str, numbers: list[str]) -> None:
    assert scene(text).numbers() == numbers


def test_every_purpose_is_said_in_both_languages() -> None:
    """A purpose stands at a known place of a wish; only a parameter or `say` may stand there."""
    places = {"Wish": 2, "body_wish": 1, "definition_wish": 1}
    wrong: list[str] = []
    found = 0
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in places:
                found += 1
                purpose = node.args[places[node.func.id]]
                spoken = isinstance(purpose, ast.Call) and getattr(purpose.func, "id", "") == "say"
                if not spoken and not isinstance(purpose, ast.Name):
                    wrong.append(f"{path.name}:{node.lineno}")
    assert found > 20
    assert wrong == []


def test_a_german_report_is_investigated_in_german(tmp_path: Path) -> None:
    files = {"conf/library.conf": configuration(), "desk.log": log()}
    diagnosed(tmp_path, GERMAN, source("<"), files)
    store = CheckpointStore(tmp_path / "home")
    document = read_json(store, store.latest("RAIL"), "analysis/investigation/0001/investigation.json")
    purposes = [end["action"]["purpose"] for end in document["actions"]]
    assert "Was sagen die Protokolle über 5127?" in purposes
    assert not [p for p in purposes if re.match(r"(Which|What|Does|Read|Where|Who|Is|How)\b", p)]
    assert not [p for p in purposes if re.search(r"(über|steht) (10|20|00)\?", p)]


@pytest.mark.parametrize(("language", "said"), [("en", "shown better"), ("de", "besser belegt")])
def test_that_one_is_shown_better_is_said_once(language: str, said: str) -> None:
    case = scene("x", language)
    better = outdone(case, "H3")
    judged = {
        "H1": Judgement("contradicts", Confidence.WEAKENED, reason=f"First. {better}"),
        "H2": Judgement("mixed", Confidence.PLAUSIBLE, reason=f"Second. {better}"),
        "H3": Judgement("supports", Confidence.SUPPORTED, reason="Chosen."),
        "H4": Judgement("contradicts", Confidence.WEAKENED, reason=better),
        "H5": Judgement("neutral", Confidence.UNASSESSED, reason="Nothing."),
    }
    text = _ruled_out(case, judged, "H3")
    assert text.count(said) == 1
    assert text.endswith(f"H1: First. H2: Second. H4. {better}")
    assert _ruled_out(case, {"H3": judged["H3"]}, "H3") == ""
