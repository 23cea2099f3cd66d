"""What every command shares: home, output form, error form and exit status."""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from viano_assets.errors import (
    BlockedError,
    ConfigurationError,
    InputError,
    PackageError,
    StorageError,
    VianoError,
)
from viano_assets.package.filesystem import refusal_of_the_disk

Command = TypeVar("Command", bound=Callable[..., Any])

DEFECT_HINT = "this is a defect of Viano: run again with VIANO_DEBUG=1 and report the traceback"

REMEDIES: Sequence[tuple[type[VianoError], str]] = (
    (InputError, "see the command's --help"),
    (ConfigurationError, "viano doctor checks the settings"),
    (BlockedError, "run the same command again later"),
    (StorageError, "check the disk's space and permissions, then run the same command again"),
    (PackageError, "viano case verify CASE lists the damage; restore the case from an export or a backup"),
    (VianoError, DEFECT_HINT),
)
"""What helps with an error that names no remedy of its own; the first kind that fits."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where the home is and how to answer."""

    home: Path
    json: bool


def common(command: Command) -> Command:
    """Add `--home` and `--json`, hand the command an `Output`, and print errors in two lines."""

    @click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="VIANO_HOME",
        default=".viano",
        show_default=True,
        show_envvar=True,
        help="Folder that holds the cases.",
    )
    @click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
    @functools.wraps(command)
    def wrapper(home: Path, as_json: bool, **arguments: Any) -> Any:
        with reporting():
            return command(_output(home, as_json=as_json), **arguments)

    return wrapper  # type: ignore[return-value]  # click keeps the signature at run time


def _output(home: Path, *, as_json: bool) -> Output:
    """Take `--home` and `--json` from before the command too; what stands after it wins."""
    context = click.get_current_context()
    before = context.find_root().params
    after = context.get_parameter_source("home") is ParameterSource.COMMANDLINE
    return Output(home if after else before.get("home") or home, as_json or bool(before.get("as_json")))


class reporting:  # noqa: N801  # used like a function, as contextlib's own managers are
    """Turn an error into its two lines on standard error and its exit status."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        refused = refusal_of_the_disk(error) if isinstance(error, OSError) else None
        told = error if isinstance(error, VianoError) else refused
        if told is not None:
            _print_error(told)
            raise SystemExit(told.exit_status)
        if isinstance(error, KeyboardInterrupt):
            click.echo("error[interrupted]: stopped by a signal before the end", err=True)
            click.echo("hint: nothing published is lost; run the same command again to continue", err=True)
            raise SystemExit(3)
        if isinstance(error, Exception) and not isinstance(error, (click.ClickException, click.Abort)):
            if os.environ.get("VIANO_DEBUG"):
                traceback.print_exception(error)
            click.echo(f"error[defect]: {type(error).__name__}: {one_line(str(error))[:300]}", err=True)
            click.echo(f"hint: {DEFECT_HINT}", err=True)
            raise SystemExit(1)


def emit(out: Output, document: Mapping[str, Any], text: str) -> None:
    """Answer with the document on one line or with the text."""
    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False) if out.json else text)


def one_line(text: str) -> str:
    """Return `text` on one line, without control characters a terminal would obey."""
    return " ".join(
        "".join(c if c.isprintable() or c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text).split()
    )


def one_line_cell(value: object) -> str:
    """Return a table cell as one line of at most 400 characters; NULL is empty."""
    text = "" if value is None else one_line(str(value))
    return text if len(text) <= 400 else text[:399] + "…"


def _print_error(error: VianoError) -> None:
    place = f" ({one_line(error.where)})" if error.where else ""
    click.echo(f"error[{error.code}]: {one_line(error.message)}{place}", err=True)
    remedy = error.hint or next(text for kind, text in REMEDIES if isinstance(error, kind))
    click.echo(f"hint: {one_line(remedy)}", err=True)


def counted(count: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{count} {one if count == 1 else many}"


def stdout_is_terminal() -> bool:
    """Tell whether a person watches standard output."""
    return sys.stdout.isatty()
