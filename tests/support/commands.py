"""The command line as a user meets it: what it says, how it exits and what it leaves behind."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
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
    def error(self) -> str:
        """The code of the two-line error."""
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


def viano_process(home: Path, *arguments: str, **environment: str) -> Answer:
    """Run `viano` in a process of its own with `home` as its home."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=os.environ | {"VIANO_HOME": str(home), "PYTHONUTF8": "1", "COLUMNS": "200"} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def tree(folder: Path) -> list[str]:
    """Return every path below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
