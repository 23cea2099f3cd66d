"""Revision history, when the archive carries a Git object store.

The foreign repository's configuration, hooks and attributes are never read: an empty repository of
our own borrows its objects, and the revision is resolved from the reference files here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TIMEOUT_S = 10.0
_HASH = re.compile(r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$")


@dataclass
class Looked:
    """The commits found, newest first, each with message and changed lines."""

    commits: list[str] = field(default_factory=list)
    up_to: str = ""
    cut: bool = False
    failure: str = ""


def present(root: Path) -> bool:
    """Say whether the tree carries a Git object store."""
    git = root / ".git"
    return (
        git.is_dir() and (git / "objects").is_dir() and not (git / "objects" / "info" / "alternates").exists()
    )


def _head(root: Path) -> str:
    """Return the commit HEAD names, or an empty string."""
    git = root / ".git"
    try:
        text = (git / "HEAD").read_text(encoding="ascii", errors="replace").strip()
        if _HASH.match(text):
            return text
        name = text.removeprefix("ref:").strip()
        if ".." in name or name.startswith("/") or not name.startswith("refs/"):
            return ""
        loose = git / name
        if loose.is_file():
            value = loose.read_text(encoding="ascii", errors="replace").strip()
            return value if _HASH.match(value) else ""
        packed = (git / "packed-refs").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for line in packed.splitlines():
        value, _, ref = line.partition(" ")
        if ref == name and _HASH.match(value):
            return value
    return ""


def look(root: Path, text: str, path: str | None, limit: int, revision: str | None) -> Looked:
    """Find the commits up to the reported revision (else HEAD) that added or removed `text`."""
    if shutil.which("git") is None:
        return Looked(failure="git is not installed")
    start = _start(root, revision)
    if not start:
        return Looked(failure="the history names no current commit")
    done = _log(
        root,
        [
            f"-S{text}",
            f"--max-count={limit + 1}",
            "--date=iso-strict",
            "--format=%x00%H %ad%n%s%n%b",
            "--patch",
            "--unified=1",
            start,
            "--",
            *([f":(literal){path}"] if path else []),
        ],
    )
    if done is None:
        return Looked(up_to=start, failure="timeout")
    if done.returncode != 0:
        return Looked(up_to=start, failure=done.stderr.decode("utf-8", "replace").strip()[:300])
    found = [c.strip() for c in done.stdout.decode("utf-8", "replace").split("\x00") if c.strip()]
    return Looked(commits=[_relevant(c, text) for c in found[:limit]], up_to=start, cut=len(found) > limit)


def _log(root: Path, arguments: list[str]) -> subprocess.CompletedProcess[bytes] | None:
    """Run `git log` on the objects of a tree; None when it takes too long."""
    git = shutil.which("git") or "git"
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
            [git, "init", "--quiet", "--bare", folder], env=environment, check=True, capture_output=True
        )
        fixed = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature"]
        command = [git, "--git-dir", folder, "--no-pager", "log", *fixed, *arguments]
        try:
            return subprocess.run(
                command, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return None


class Change(NamedTuple):
    """One commit: what it says and the paths it changed."""

    message: str
    paths: tuple[str, ...]


def changes(root: Path, limit: int, revision: str | None) -> list[Change]:
    """Return the commits before the reported revision (else HEAD), newest first; none without a history."""
    start = _start(root, revision) if present(root) and shutil.which("git") else ""
    if not start:
        return []
    listed = ["--no-merges", "--no-renames", "--name-only", f"--max-count={limit}"]
    done = _log(root, [*listed, "-z", "--format=%x02%s%n%b%x03", start, "--"])
    if done is None or done.returncode != 0:
        return []
    result = []
    for commit in done.stdout.decode("utf-8", "replace").split("\x02")[1:]:
        message, _, paths = commit.partition("\x03")
        names = (p.strip("\n") for p in paths.split("\x00"))
        result.append(Change(message.strip(), tuple(n for n in names if n)))
    return result


def _start(root: Path, revision: str | None) -> str:
    """Return the commit to look back from: the reported revision when it is one, else what HEAD names."""
    return revision if revision and re.fullmatch(r"[0-9a-f]{7,64}", revision) else _head(root)


def _relevant(commit: str, text: str) -> str:
    """Keep the head of a commit and the hunks that hold the text."""
    head, *diffs = re.split(r"^(?=diff --git )", commit, flags=re.MULTILINE)
    kept = []
    for diff in diffs:
        name, *hunks = re.split(r"^(?=@@ )", diff, flags=re.MULTILINE)
        holding = [h for h in hunks if text in h]
        if holding:
            files = [n for n in name.splitlines() if n.startswith(("---", "+++"))]
            kept.append("\n".join([*files, *(h.rstrip() for h in holding)]))
    return "\n".join([head.rstrip(), *kept])
