"""History: from which revision it is looked at, how far back it goes, and who last changed a line."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from resources.tools.registry import ToolBoxFactory
from resources.tools.source import SourceTree, check
from resources.tools.source.history import Reported
from viano_assets.case.intake import import_case
from viano_assets.evidence.model import Completeness
from viano_assets.package.store import CheckpointStore

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Run Git in the tree `origin` below the test's folder."""
    people = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**people, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    root = tmp_path / "origin"
    root.mkdir()

    def run(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=root, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    return run


@pytest.fixture
def revisions(git: Git, tmp_path: Path) -> list[str]:
    """Three commits of one file; the first is tagged v1.0, the second 1.1 with a message."""
    found = []
    for number, text in enumerate(("limit = 5\n", "limit = 5\nseal()\n", "limit = 6  # later\nseal()\n")):
        (tmp_path / "origin" / "a.py").write_text(text)
        git("add", ".")
        git("commit", "-qm", f"step {number}")
        found.append(git("rev-parse", "HEAD"))
    git("tag", "v1.0", found[0])
    git("tag", "-a", "-m", "the second", "1.1", found[1])
    return found


def _tree(tmp_path: Path, reported: Reported | None, root: Path | None = None) -> SourceTree:
    return SourceTree(root or tmp_path / "origin", "i", "ef" * 32, tmp_path / "cache", revision=reported)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("reported", "at"),
    [
        (lambda r: Reported((r[0],)), 0),
        (lambda r: Reported((r[1][:9],)), 1),
        (lambda r: Reported((r[2], r[0])), 0),
        (lambda _: Reported(versions=("1.0",), own=("1.0",)), 0),
        (lambda _: Reported(versions=("v1.1",), own=("v1.1",)), 1),
        (lambda _: Reported(versions=("3.11",)), 2),
        (lambda _: None, 2),
    ],
)
def test_nothing_later_than_the_reported_revision_is_looked_at(
    git: Git,
    revisions: list[str],
    tmp_path: Path,
    reported: Callable[[list[str]], Reported | None],
    at: int,
    *,
    packed: bool,
) -> None:
    if packed:
        git("pack-refs", "--all")
    tree = _tree(tmp_path, reported(revisions))
    later = tree.history({"text": "# later"})
    assert later.scope["up_to"] == revisions[at]
    assert later.empty == (at < 2)
    assert tree.history({"text": "seal()"}).empty == (at < 1)


@pytest.mark.parametrize(
    "reported", [Reported(("0123456789abcdef",)), Reported(versions=("9.9",), own=("9.9",))]
)
@pytest.mark.usefixtures("revisions")
def test_a_reported_revision_that_is_not_there_leaves_no_history(tmp_path: Path, reported: Reported) -> None:
    result = _tree(tmp_path, reported).history({"text": "limit"})
    assert result.completeness is Completeness.UNAVAILABLE
    assert (reported.commits or reported.own)[0] in str(result.cause)


def test_a_shallow_clone_is_read_as_far_as_it_goes(git: Git, revisions: list[str], tmp_path: Path) -> None:
    git("clone", "-q", "--depth", "1", f"file://{tmp_path}/origin", str(tmp_path / "shallow"))
    tree = _tree(tmp_path, None, tmp_path / "shallow")
    found = tree.history({"text": "seal()"})
    assert (found.empty, found.completeness) == (False, Completeness.PARTIAL)
    assert revisions[2] in found.drafts[0].content
    assert "all it holds appears as added" in found.drafts[0].content
    absent = tree.history({"text": "limit = 5"})
    assert (absent.empty, absent.completeness) == (True, Completeness.PARTIAL)
    assert "shallow" in str(absent.cause)
    line = json.loads(tree.history({"mode": "blame", "path": "a.py", "line_start": 2}).drafts[0].content)
    assert line["or_older"] is True


def test_blame_names_the_commit_of_each_line_up_to_the_revision(revisions: list[str], tmp_path: Path) -> None:
    asked = {"mode": "blame", "path": "a.py", "line_start": 1, "line_end": 2}
    result = _tree(tmp_path, None).history(asked)
    rows = [json.loads(line) for line in result.drafts[0].content.splitlines()]
    assert [(r["line"], r["commit"], r["text"]) for r in rows] == [
        (1, revisions[2][:12], "limit = 6  # later"),
        (2, revisions[1][:12], "seal()"),
    ]
    earlier = _tree(tmp_path, Reported((revisions[1],))).history(asked)
    assert json.loads(earlier.drafts[0].content.splitlines()[0])["commit"] == revisions[0][:12]
    beyond = _tree(tmp_path, Reported((revisions[0],))).history({**asked, "line_start": 2})
    assert beyond.completeness is Completeness.UNAVAILABLE
    missing = _tree(tmp_path, None).history({**asked, "path": "nope.py"})
    assert missing.completeness is Completeness.UNAVAILABLE


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"mode": "blame"},
        {"mode": "blame", "path": "a.py"},
        {"mode": "blame", "path": "a.py", "line_start": 1, "text": "xx"},
        {"mode": "blame", "path": "a.py", "line_start": 1, "line_end": 500},
        {"mode": "blame", "path": "a.py", "line_start": 5, "line_end": 4},
        {"mode": "blame", "path": "../a.py", "line_start": 1},
        {"text": "xx", "line_start": 1},
    ],
)
def test_what_cannot_be_asked_of_history(arguments: dict[str, object]) -> None:
    assert check("source.history", arguments)


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("Revision: {0}", 0),
        ("Seen at commit {1:.10}.", 1),
        ("Version: v1.0", 0),
        ("Commit: {1:.9}", 1),
        ("", 2),
    ],
)
def test_the_revision_that_the_report_names_reaches_the_tool(
    revisions: list[str], tmp_path: Path, line: str, at: int
) -> None:
    report = tmp_path / "r.md"
    report.write_text(f"# The limit is wrong\n\n{line.format(*revisions)}\n\n## Observed\nThe limit is 5.\n")
    packed = shutil.make_archive(str(tmp_path / "s"), "zip", tmp_path / "origin")
    store = CheckpointStore(tmp_path / "home")
    head = import_case(store, case_id="REV", report=report, source=Path(packed))
    box = ToolBoxFactory(tmp_path / "cache").open(store, head)
    assert box.run("source.history", {"text": "limit"}).scope["up_to"] == revisions[at]
    assert box.overview()["source"]["top_folders"] == []


@pytest.mark.usefixtures("revisions")
def test_what_git_keeps_is_no_source(tmp_path: Path) -> None:
    tree = _tree(tmp_path, None)
    for asked in ({"pattern": "refs/heads"}, {"pattern": "refs/heads", "globs": ["*"]}):
        result = tree.search(asked)
        assert (result.empty, result.scope["left_out"]) == (True, [".git"])
    assert (tree.overview()["files"], tree.overview()["history"]) == (1, True)
