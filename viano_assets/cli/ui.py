"""`viano ui` and `viano sync`: Dagster as catalogue, queue, clock and window over the case store."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from pathlib import Path

import click

from viano_assets.cli.options import Output, common, counted
from viano_assets.cli.supervision import supervise
from viano_assets.data_files import CONFIG
from viano_assets.errors import InputError

LOOPBACK = "127.0.0.1"
GRAPH = "locations/__repository__@viano_assets.definitions/asset-groups/case/lineage"


def dagster_environment(home: Path) -> dict[str, str]:
    """Prepare the Dagster home of a Viano home and return the environment that uses it.

    `DAGSTER_HOME` is respected when set; otherwise it is `<home>/dagster`, with the shipped
    `dagster.yaml` (telemetry off, loopback, SQLite).
    """
    home = home.resolve()
    folder = Path(os.environ.get("DAGSTER_HOME") or home / "dagster")
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "dagster.yaml"
    if not settings.exists():
        shutil.copyfile(CONFIG / "dagster.yaml", settings)
    return os.environ | {"DAGSTER_HOME": str(folder), "VIANO_HOME": str(home)}


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise InputError(
                "port_in_use",
                f"port {port} is taken",
                hint=f"stop the other program or run: viano ui --port {port + 1}",
            ) from error


@click.command()
@click.option("--port", type=click.IntRange(1, 65_535), default=3000, show_default=True)
@common
def ui(out: Output, port: int) -> None:
    """Open the Dagster UI on loopback; Ctrl-C stops everything it started."""
    _check_port(port)
    environment = dagster_environment(out.home)
    counts = _sync(environment)
    revisions = counted(counts["partitions"], "case revision is", "case revisions are")
    click.echo(f"{revisions} known to Dagster.", err=True)
    click.echo(f"UI: http://{LOOPBACK}:{port}/{GRAPH}   (Ctrl-C stops it)", err=True)
    command = [
        sys.executable,
        "-m",
        "dagster",
        "dev",
        "-m",
        "viano_assets.definitions",
        "-h",
        LOOPBACK,
        "-p",
        str(port),
    ]
    raise SystemExit(supervise(command, environment))


def _sync(environment: dict[str, str]) -> dict[str, int]:
    import dagster as dg  # noqa: PLC0415  # the only command group that needs it

    from viano_assets.automation.sync import sync_home  # noqa: PLC0415

    os.environ.update(environment)
    with dg.DagsterInstance.get() as instance:
        return sync_home(Path(environment["VIANO_HOME"]), instance)


@click.command()
@common
def sync(out: Output) -> None:
    """Tell Dagster about every case revision and every finished phase of the home."""
    counts = _sync(dagster_environment(out.home))
    text = (
        f"{counts['partitions']} partitions known, {counts['added']} added, "
        f"{counts['reported']} materialisations reported."
    )
    click.echo(json.dumps(counts) if out.json else text)
