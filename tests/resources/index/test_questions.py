"""Every question of docs/sql.md is answered, and every table and column is told."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resources.evidence_index import EvidenceIndex
from resources.index.tables import TABLES
from resources.session import Session
from tests.support.graph import small_case
from viano_assets.cli.sql import sql
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import Phase

DOCS = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"^### (.+?)\n\n```sql\n(.+?)```", DOCS, flags=re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sql") / "home"
    small_case(home, "BUG-1")
    asyncio.run(Session.open(home).run("BUG-1"))
    index = EvidenceIndex(home)
    for run, first, status in (("c.r0001", False, "inconclusive"), ("c.r0002", True, "confirmed")):
        rows: list[dict[str, Any]] = [
            {
                "run_id": run, "corpus": "c", "predictor": predictor, "bug_id": "b", "kind": "code",
                "status": status, "file_any_1": first, "file_any_5": True, "symbol_any_5": first,
                "confirmed": first, "overclaim": False, "root_cause_correct": False, "units": 7,
                "effective_confidence": "supported",
            }
            for predictor in ("viano", "bm25")
        ]  # fmt: skip
        index.publish(run, 1, {"evaluations": rows})
    return home


def test_there_are_twelve_questions() -> None:
    assert len(QUESTIONS) == 12


@pytest.mark.parametrize("title", QUESTIONS)
def test_a_question_of_the_docs_is_answered(home: Path, title: str) -> None:
    answer = EvidenceIndex(home).query(QUESTIONS[title])
    if title.startswith(("What did each", "Where do the tokens", "Where is", "How does", "How did")):
        assert answer.rows


def test_the_last_two_runs_are_compared(home: Path) -> None:
    answer = EvidenceIndex(home).query(QUESTIONS["What changed between two runs of a corpus?"])
    assert answer.rows == [["c", "b", "inconclusive", "confirmed", False, True, 7, 7]]


def test_every_table_is_told() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", DOCS, flags=re.MULTILINE)) == set(TABLES)


def test_the_command_answers_as_table_json_and_csv(home: Path) -> None:
    def answer(*arguments: str) -> str:
        done = CliRunner().invoke(sql, ["--home", str(home), *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    query = "SELECT case_id, language, NULL AS nothing FROM cases"
    document = json.loads(answer("--json", query))
    assert document == {
        "columns": ["case_id", "language", "nothing"],
        "rows": [["BUG-1", "en", None]],
        "truncated": False,
    }
    assert answer("--csv", query).splitlines() == ["case_id,language,nothing", "BUG-1,en,"]
    assert "BUG-1" in answer(query)


def test_the_command_refuses_in_two_lines(home: Path) -> None:
    done = CliRunner().invoke(sql, ["--home", str(home), "DROP TABLE cases"])
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 2
    assert "sql_refused" in done.stderr


def test_a_deleted_index_is_made_again_and_the_reader_told(tmp_path: Path) -> None:
    """A deleted index answered with no rows, and after one run with the rows of that run only."""
    home = tmp_path / "home"
    for number in (1, 2, 3):
        small_case(home, f"BUG-{number}")
    session = Session.open(home)
    asyncio.run(session.run("BUG-1", until=Phase.INTERPRETATION))
    shutil.rmtree(home / "index")
    query = "SELECT case_id FROM cases ORDER BY case_id"

    def ask() -> tuple[list[str], str]:
        done = CliRunner().invoke(sql, ["--home", str(home), "--json", query])
        assert done.exit_code == 0, done.output
        return [row[0] for row in json.loads(done.stdout)["rows"]], done.stderr

    rows, said = ask()
    assert rows == ["BUG-1", "BUG-2", "BUG-3"]
    assert "lacked 3 case revisions" in said
    assert ask() == (rows, "")
    shutil.rmtree(home / "index")
    asyncio.run(session.run("BUG-2", until=Phase.INTERPRETATION))
    rows, said = ask()
    assert rows == ["BUG-1", "BUG-2", "BUG-3"]
    assert "lacked 2 case revisions" in said
    (home / "cases" / "BUG-3" / "objects").rename(tmp_path / "objects")
    (home / "cases" / "BUG-3" / "gens").rename(tmp_path / "gens")
    shutil.rmtree(home / "index")
    rows, said = ask()
    assert rows == ["BUG-1", "BUG-2"]
    assert "cannot be read: BUG-3@r1" in said


def test_a_stored_run_that_the_index_lacks_makes_it_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    small_case(home, "BUG-1")
    store = CheckpointStore(home)
    EvidenceIndex(home).update(store, store.latest("BUG-1"))
    folder = home / "corpora" / "c" / "runs" / "c.r0001"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}", encoding="utf-8")
    row = {"run_id": "c.r0001", "corpus": "c", "bug_id": "b", "predictor": "viano"}
    (folder / "scores.json").write_text(json.dumps({"rows": [row]}), encoding="utf-8")
    done = CliRunner().invoke(sql, ["--home", str(home), "--json", "SELECT run_id, bug_id FROM evaluations"])
    assert json.loads(done.stdout)["rows"] == [["c.r0001", "b"]]
    assert "lacked 1 run of" in done.stderr
