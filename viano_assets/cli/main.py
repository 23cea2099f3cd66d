"""The `viano` command. Groups are imported only when asked for, so that `viano case list` starts quickly."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import click

from viano_assets import __version__


class LazyGroup(click.Group):
    """A group whose members are imported on first use; help texts stand here."""

    members: ClassVar[dict[str, tuple[str, str]]] = {
        "case": ("viano_assets.cli.case:case", "Import, show, verify, reopen and transfer cases."),
        "run": ("viano_assets.cli.run:run", "Drive a case through its phases."),
        "trial": ("viano_assets.cli.run:trial", "`viano trial run` is `viano run`."),
        "sql": ("viano_assets.cli.sql:sql", "Ask the evidence index in SQL (read-only)."),
        "index": ("viano_assets.cli.sql:index", "Rebuild or copy the evidence index."),
        "doctor": ("viano_assets.cli.doctor:doctor", "Check this machine, the home and the providers."),
        "demo": ("viano_assets.cli.demo:demo", "Diagnose a bundled case and explain what you see."),
        "ui": ("viano_assets.cli.ui:ui", "Open the Dagster UI on loopback."),
        "sync": ("viano_assets.cli.ui:sync", "Tell Dagster about every case and finished phase."),
        "outbox": ("viano_assets.cli.outbox:outbox", "List and acknowledge finished outputs."),
        "corpus": ("viano_assets.cli.corpus:corpus", "Build, run and report known-bug corpora."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order people need them."""
        del ctx
        return [name for name in self.members if self._exists(name)]

    def _exists(self, name: str) -> bool:
        return importlib.util.find_spec(self.members[name][0].split(":")[0]) is not None

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return one command."""
        del ctx
        if name not in self.members or not self._exists(name):
            return None
        module, attribute = self.members[name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command list without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.members[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="viano")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="As after the command: folder of the cases.",
)
@click.option("--json", "as_json", is_flag=True, help="As after the command: one JSON document.")
def cli(home: Path | None, as_json: bool) -> None:
    """Find where and why a reported bug breaks, with evidence that can be checked."""
    del home, as_json


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (None takes the process's arguments) and exit.

    Exit status: 0 done, 1 damaged or defect, 2 usage or input, 3 blocked or busy.
    """
    try:
        status = cli.main(args=arguments, prog_name="viano", standalone_mode=False)
    except click.UsageError as error:
        hint = f"see {error.ctx.command_path} --help" if error.ctx else "see viano --help"
        click.echo(f"error[usage]: {error.format_message()}\nhint: {hint}", err=True)
        status = 2
    except click.ClickException as error:
        click.echo(f"error[usage]: {error.format_message()}\nhint: see viano --help", err=True)
        status = 2
    except click.Abort:
        status = 3
    sys.exit(status if isinstance(status, int) else 0)
