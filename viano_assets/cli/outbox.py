"""`viano outbox`: finished outputs waiting to be fetched."""

from __future__ import annotations

import json

import click

from viano_assets.cli.options import Output, common
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import check_case_id


@click.group()
def outbox() -> None:
    """List and acknowledge finished outputs."""


@outbox.command("list")
@common
def list_(out: Output) -> None:
    """List the outputs that nobody has acknowledged."""
    from viano_assets.case.outbox import pending_entries  # noqa: PLC0415

    entries = pending_entries(CheckpointStore(out.home))
    if out.json:
        click.echo(json.dumps({"entries": entries}))
        return
    for entry in entries:
        click.echo(f"{entry['entry_id']}  {entry['case_id']}@r{entry['analysis_revision']}  {entry['kind']}")
    if not entries:
        click.echo("The outbox is empty.")


@outbox.command()
@click.argument("case_id", metavar="CASE")
@common
def ack(out: Output, case_id: str) -> None:
    """Acknowledge the output of CASE; acknowledging twice changes nothing."""
    from viano_assets.case.outbox import acknowledge  # noqa: PLC0415

    entry = acknowledge(CheckpointStore(out.home), check_case_id(case_id))
    click.echo(json.dumps(entry) if out.json else f"Acknowledged {entry['entry_id']}.")
