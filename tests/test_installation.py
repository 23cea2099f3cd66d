"""The built wheel holds everything that a run needs: prompts, settings and the bundled case."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.deep._daemon_install import failures
from tests.support.processes import ROOT


@pytest.mark.timeout(300)
def test_the_wheel_runs_outside_the_repository(tmp_path: Path) -> None:
    """Its dependencies are those of this environment; `make test-deep NAME=daemon` installs them anew."""
    wheels = tmp_path / "wheels"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (python.parent / "rg").symlink_to(Path(sys.executable).parent / "rg")
    assert failures(tmp_path, python.parent, only=["demo", "definitions"]) == []
