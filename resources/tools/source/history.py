"""Revision history, when the archive carries a Git object store.

The foreign repository's configuration, hooks and attributes are never read: an empty repository of
our own borrows its objects, and the revision is resolved from the reference files here. Where a shallow
clone ends is taken over, so that its last commits count as roots.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

TIMEOUT_S = 10.0
_HASH = re.compile(r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$")
_SHORT = re.compile(r"^[0-9a-f]{7,64}$")
_NO_COMMIT = "the history names no current commit"
SHALLOW = "the archive carries only the last commits (a shallow clone)"


class Reported(NamedTuple):
    """What a report says of the revision it is about.

    Args:
        commits: hashes, full or shortened, in the order they are named.
        versions: versions that may be the names of tags.
        own: versions that name no other product, so that the source ought to know them.
    """

    commits: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


class Start(NamedTuple):
    """The commit to look back from; `trouble` says why there is none."""

    commit: str = ""
    trouble: str = ""


NOWHERE = Start(trouble=_NO_COMMIT)


@dataclass
class Looked:
    """The commits found, newest first, each with message and changed lines."""

    commits: list[str] = field(default_factory=list)
    cut: bool = False
    failure: str = ""


def present(root: Path) -> bool:
    """Say whether the tree carries a Git object store."""
    git = root / ".git"
    return (
        git.is_dir() and (git / "objects").is_dir() and not (git / "objects" / "info" / "alternates").exists()
    )


def boundaries(root: Path) -> tuple[str, ...]:
    """Return the commits at which a shallow clone ends; none when the history is whole."""
    try:
        text = (root / ".git" / "shallow").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ()
    return tuple(sorted(line for line in text.split() if _HASH.match(line)))


def resolve(root: Path, reported: Reported | None) -> Start:
    """Find the commit to look back from: the reported one, the tag of a reported version, else HEAD.

    HEAD may be later than a revision that is reported and not found: then there is none.
    """
    if not present(root) or shutil.which("git") is None:
        return Start(trouble="git is not installed" if present(root) else "the archive carries no history")
    said = reported or Reported()
    with _borrowed(root) as git:
        if said.commits:
            found = [c for name in said.commits if _SHORT.match(name) and (c := git.commit(name))]
            named = ", ".join(said.commits)
            missing = f"the history does not hold the reported revision {named}"[:300]
            return Start(git.earliest(found)) if found else Start(trouble=missing)
        tags = _references(root, "refs/tags/")
        wanted = [v for version in said.versions for v in _spellings(version) if v in tags]
        found = [c for name in wanted if (c := git.commit(tags[name]))]
        if found:
            return Start(git.earliest(found))
    if said.own:
        return Start(trouble=f"no tag names the reported version {', '.join(said.own)}"[:300])
    head = _head(root)
    return Start(head) if head else Start(trouble=_NO_COMMIT)


def _spellings(version: str) -> tuple[str, ...]:
    plain = version.lstrip("vV")
    return version, plain, f"v{plain}", f"release-{plain}", f"release/{plain}"


def _references(root: Path, prefix: str) -> dict[str, str]:
    """Return the hashes of the references below a prefix by the rest of their names."""
    git = root / ".git"
    found: dict[str, str] = {}
    try:
        packed = (git / "packed-refs").read_text(encoding="utf-8", errors="replace")
    except OSError:
        packed = ""
    for line in packed.splitlines():
        value, _, name = line.partition(" ")
        if name.startswith(prefix) and _HASH.match(value):
            found[name.removeprefix(prefix)] = value
    base = git / prefix
    for path in sorted(base.rglob("*")) if base.is_dir() and not base.is_symlink() else ():
        if path.is_file() and not path.is_symlink():
            value = path.read_text(encoding="ascii", errors="replace").strip()
            if _HASH.match(value):
                found[path.relative_to(base).as_posix()] = value
    return found


def _head(root: Path) -> str:
    """Return the commit HEAD names, or an empty string."""
    try:
        text = (root / ".git" / "HEAD").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
    if _HASH.match(text):
        return text
    name = text.removeprefix("ref:").strip()
    if ".." in name or not name.startswith("refs/"):
        return ""
    return _references(root, "refs/").get(name.removeprefix("refs/"), "")


class _Git:
    """An empty repository that borrows the objects of a tree."""

    def __init__(self, folder: str, environment: dict[str, str]) -> None:
        self._command = [shutil.which("git") or "git", "--git-dir", folder, "--no-pager"]
        self._environment = environment

    def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
        """Run a command of Git; None when it takes too long."""
        try:
            return subprocess.run(
                [*self._command, *arguments],
                env=self._environment,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None

    def commit(self, name: str) -> str:
        """Return the full hash of the commit a hash or a tag's hash leads to, or an empty string."""
        done = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        text = done.stdout.decode("ascii", "replace").strip() if done and done.returncode == 0 else ""
        return text if _HASH.match(text) else ""

    def earliest(self, commits: list[str]) -> str:
        """Return the commit that comes before the others: nothing later than it may be looked at."""
        best = commits[0]
        for other in commits[1:]:
            done = self.run("merge-base", "--is-ancestor", other, best)
            best = other if done is not None and done.returncode == 0 else best
        return best


@contextmanager
def _borrowed(root: Path) -> Iterator[_Git]:
    with tempfile.TemporaryDirectory(prefix="viano-history-") as folder:
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": folder,
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((root / ".git" / "objects").resolve()),
        }
        subprocess.run(
            [shutil.which("git") or "git", "init", "--quiet", "--bare", folder],
            env=environment,
            check=True,
            capture_output=True,
        )
        ends = boundaries(root)
        if ends:
            (Path(folder) / "shallow").write_text("".join(f"{c}\n" for c in ends), encoding="ascii")
        yield _Git(folder, environment)


_FIXED = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature")


def look(root: Path, text: str, path: str | None, limit: int, start: str) -> Looked:
    """Find the commits up to `start` that added or removed `text`."""
    with _borrowed(root) as git:
        done = git.run(
            "log",
            *_FIXED,
            f"-S{text}",
            f"--max-count={limit + 1}",
            "--date=iso-strict",
            "--format=%x00%H %ad%n%s%n%b",
            "--patch",
            "--unified=1",
            start,
            "--",
            *([f":(literal){path}"] if path else []),
        )
    if done is None or done.returncode != 0:
        return Looked(failure=_failure(done))
    found = [c.strip() for c in done.stdout.decode("utf-8", "replace").split("\x00") if c.strip()]
    ends = set(boundaries(root))
    commits = [_relevant(c, text, bounded=c.split(" ", 1)[0] in ends) for c in found[:limit]]
    return Looked(commits=commits, cut=len(found) > limit)


def _failure(done: subprocess.CompletedProcess[bytes] | None) -> str:
    if done is None:
        return "timeout"
    return done.stderr.decode("utf-8", "replace").strip()[:300] or "git gave no answer"


class Change(NamedTuple):
    """One commit: what it says and the paths it changed."""

    message: str
    paths: tuple[str, ...]


def changes(root: Path, limit: int, start: Start) -> list[Change]:
    """Return the commits from `start` back, newest first; none without a history."""
    if not start.commit:
        return []
    listed = ["--no-merges", "--no-renames", "--name-only", f"--max-count={limit}"]
    with _borrowed(root) as git:
        done = git.run("log", *_FIXED, *listed, "-z", "--format=%x02%s%n%b%x03", start.commit, "--")
    if done is None or done.returncode != 0:
        return []
    result = []
    for commit in done.stdout.decode("utf-8", "replace").split("\x02")[1:]:
        message, _, paths = commit.partition("\x03")
        names = (p.strip("\n") for p in paths.split("\x00"))
        result.append(Change(message.strip(), tuple(n for n in names if n)))
    return result


def _relevant(commit: str, text: str, *, bounded: bool) -> str:
    """Keep the head of a commit and the hunks that hold the text."""
    head, *diffs = re.split(r"^(?=diff --git )", commit, flags=re.MULTILINE)
    kept = [f"({SHALLOW}: all it holds appears as added)"] if bounded else []
    for diff in diffs:
        name, *hunks = re.split(r"^(?=@@ )", diff, flags=re.MULTILINE)
        holding = [h for h in hunks if text in h]
        if holding:
            files = [n for n in name.splitlines() if n.startswith(("---", "+++"))]
            kept.append("\n".join([*files, *(h.rstrip() for h in holding)]))
    return "\n".join([head.rstrip(), *kept])


class Blamed(NamedTuple):
    """One line as it stood at the revision, and the commit that last changed it."""

    line: int
    text: str
    commit: str
    date: str
    subject: str
    bounded: bool
    """The commit is where a shallow clone ends: the line may be older."""


def blame(root: Path, path: str, first: int, last: int, start: str) -> list[Blamed] | str:
    """Return the lines of a file at `start` with their commits; a text says why there are none."""
    with _borrowed(root) as git:
        done = git.run("blame", "--line-porcelain", "-L", f"{first},{last}", start, "--", path)
    if done is None or done.returncode != 0:
        return _failure(done)
    ends = set(boundaries(root))
    found: list[Blamed] = []
    head: dict[str, str] = {}
    for raw in done.stdout.decode("utf-8", "replace").split("\n"):
        if raw.startswith("\t"):
            commit, seconds = head["commit"], head.get("committer-time", "")
            date = datetime.fromtimestamp(int(seconds), UTC).isoformat() if seconds.isdigit() else ""
            subject = head.get("summary", "")
            found.append(Blamed(int(head["line"]), raw[1:], commit, date, subject, commit in ends))
            head = {}
        elif not head and _HASH.match(raw.split(" ", 1)[0]):
            commit, _, line = raw.split(" ")[:3]
            head = {"commit": commit, "line": line}
        else:
            key, _, value = raw.partition(" ")
            head[key] = value
    return found
