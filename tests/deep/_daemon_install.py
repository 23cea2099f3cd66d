"""An installation into an empty environment, used from another folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from tests.support.processes import ROOT

PATIENCE_S = 1_200.0
CHECKS = 7
"""How many things `failures` looks at."""


def elsewhere(root: Path) -> dict[str, object]:
    """Install the repository with its dependencies from the package index, and use it.

    `install_checks` is null where there is no package index.
    """
    venv.create(root / "env", with_pip=True)
    python = root / "env" / "bin" / "python"
    installed = _said(root, [str(python), "-m", "pip", "install", "-q", str(ROOT)])
    if installed.returncode:
        if "No matching distribution" in installed.stderr or "Could not find a version" in installed.stderr:
            sys.stderr.write("  no package index\n")
            return {"install_checks": None, "install_failures": None}
        raise AssertionError(installed.stderr[-2_000:])
    failed = failures(root, python.parent)
    sys.stderr.write("".join(f"  {line}\n" for line in failed))
    return {"install_checks": CHECKS, "install_failures": len(failed)}


def failures(root: Path, programs: Path, *, only: Sequence[str] = ()) -> list[str]:
    """Run the installed programs from `root`, far from the repository, and tell what fails.

    `only` names the programs to run; none names all.
    """
    home = str(root / "home")
    viano = str(programs / "viano")
    checks: dict[str, Sequence[str]] = {
        "demo": [viano, "demo", "--home", home, "--json"],
        "verify": [viano, "case", "verify", "DEMO-1", "--home", home],
        "index": [viano, "sql", "select count(*) from evidence", "--home", home, "--json"],
        "sync": [viano, "sync", "--home", home],
        "doctor": [viano, "doctor", "--home", home],
        "definitions": [
            *(str(programs / "python"), "-m", "dagster", "definitions", "validate"),
            *("-m", "viano_assets.definitions"),
        ],
    }
    failed = []
    for name, command in checks.items():
        if only and name not in only:
            continue
        answer = _said(root, command)
        if answer.returncode:
            failed.append(f"{name}: exit {answer.returncode}: {answer.stdout[-300:]}{answer.stderr[-500:]}")
        elif name == "demo" and json.loads(answer.stdout)["diagnosis"]["status"] != "confirmed":
            failed.append("demo: not confirmed")
    where = _said(root, [str(programs / "python"), "-c", "import viano_assets; print(viano_assets.__file__)"])
    if not Path(where.stdout.strip()).is_relative_to(programs.parent):
        failed.append(f"imported from {where.stdout.strip()}")
    return failed


def _said(root: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    kept = (
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "PIP_INDEX_URL",
        "PIP_CONFIG_FILE",
        "PIP_CACHE_DIR",
        "SSL_CERT_FILE",
    )
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    dagster = root / "dagster"
    dagster.mkdir(exist_ok=True)
    return subprocess.run(
        command,
        cwd=root,
        env=environment | {"DAGSTER_HOME": str(dagster)},
        check=False,
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
    )
