"""The command line as a user meets it: what it says, how it exits and what it leaves behind."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import ROOT
from viano_assets.cli.main import main

COMMAND = (sys.executable, "-c", "from viano_assets.cli.main import main; main()")


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """The code of the two-line error; progress may stand before it."""
        return Answer(self.status, "", "\n".join(self.err.splitlines()[-2:])).error

    @property
    def error(self) -> str:
        """The code of the two-line error, which is all that was said."""
        lines = self.err.splitlines()
        assert len(lines) == 2, self.err
        assert lines[0].startswith("error["), self.err
        assert lines[1].startswith("hint: "), self.err
        assert "Traceback" not in self.err
        return lines[0][len("error[") : lines[0].index("]")]


def viano(home: Path, *arguments: str) -> Answer:
    """Run `viano` in this process with `home` as its home; the whole command line but its start."""
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([*arguments, "--home", str(home)])
        except SystemExit as end:
            status = end.code
    assert isinstance(status, int)
    return Answer(status, out.getvalue(), err.getvalue())


WITHOUT_RIGHTS = """
import ctypes, os, sys
CAPBSET_DROP, DAC_OVERRIDE, DAC_READ_SEARCH, CHOWN, FOWNER = 24, 1, 2, 0, 3
for capability in (DAC_OVERRIDE, DAC_READ_SEARCH, CHOWN, FOWNER):
    ctypes.CDLL(None).prctl(CAPBSET_DROP, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes the command after it, for which the modes of files count even when root runs the tests."""


def viano_without_rights(home: Path, *arguments: str) -> Answer:
    """Run `viano` as `viano_process` does, in a process that cannot write where the mode forbids it."""
    return _answer((sys.executable, "-c", WITHOUT_RIGHTS, *COMMAND), home, arguments, {})


def viano_process(home: Path, *arguments: str, **environment: str) -> Answer:
    """Run `viano` in a process of its own with `home` as its home."""
    return _answer(COMMAND, home, arguments, environment)


def _answer(
    command: Sequence[str], home: Path, arguments: Sequence[str], environment: dict[str, str]
) -> Answer:
    done = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=os.environ | {"VIANO_HOME": str(home), "PYTHONUTF8": "1", "COLUMNS": "200"} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def started(home: Path, *arguments: str, command: Sequence[str] = COMMAND) -> subprocess.Popen[str]:
    """Start `viano` with `home` as its home and leave it running; what it says can be read."""
    return subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        env=os.environ | {"VIANO_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def tree(folder: Path) -> list[str]:
    """Return every path below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
