"""The house: import directions, quick starts, prompts and settings that are found from anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_import_directions() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("viano_assets.cli.case", "dagster"),
        ("viano_assets.cli.case", "duckdb"),
        ("viano_assets.cli.case", "matplotlib"),
        ("viano_assets.phases.drive", "dagster"),
        ("resources.session", "dagster"),
    ],
)
def test_plain_cores_do_not_load(module: str, banned: str) -> None:
    """`viano case list` must start quickly, and the phases must run without Dagster."""
    script = f"import sys, {module}; sys.exit({banned!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd="/", check=False, timeout=60)
    assert done.returncode == 0


def test_definitions_load_without_a_warning() -> None:
    script = "import viano_assets.definitions as d; d.defs.get_repository_def()"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
