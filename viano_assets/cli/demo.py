"""`viano demo`: a bundled case from report to diagnosis, for somebody who sees Viano for the first time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from viano_assets.case.intake import import_case
from viano_assets.cli.options import Output, common
from viano_assets.cli.progress import LiveProgress
from viano_assets.cli.run import STATUS_EXIT, report_stop
from viano_assets.cli.stopping import run_until_stopped
from viano_assets.data_files import DEMO
from viano_assets.errors import ConfigurationError
from viano_assets.phases.protocols import PhaseResult, Progress

if TYPE_CHECKING:
    from resources.session import Session

CASE_ID = "DEMO-1"
PROVIDER = "offline"
INPUTS = ("report.md", "diagnostics.zip", "source.zip")


@click.command()
@common
def demo(out: Output) -> None:
    """Diagnose a bundled case with the offline analyst and show what there is to see.

    The case is kept as DEMO-1 in the home; a second run replays it, and an interrupted one continues.
    """
    from resources.session import Session  # noqa: PLC0415  # keeps `viano --help` fast
    from viano_assets.phases.diagnosis.view import case_view  # noqa: PLC0415

    report, diagnostics, source = _inputs()
    with LiveProgress(quiet=out.json) as progress:
        session = Session.open(out.home, provider=PROVIDER, progress=progress.report)
        known = CASE_ID in session.store.case_ids()
        if not known:
            import_case(
                session.store,
                case_id=CASE_ID,
                report=report,
                diagnostics=diagnostics,
                source=source,
                progress=lambda text: progress.report(Progress(CASE_ID, "import", text, {})),
            )
        finished = known and session.store.latest(CASE_ID).pointer("diagnosis") is not None
        _introduce(out, report, known=known, finished=finished)
        result = run_until_stopped(lambda: session.run(CASE_ID))
    head = session.store.latest(CASE_ID)
    view = case_view(session.store, head, head.revision)
    if out.json:
        click.echo(json.dumps(view, ensure_ascii=False, allow_nan=False))
    else:
        from viano_assets.cli.render import print_result  # noqa: PLC0415

        print_result(session.store, head, out.home, view)
        _verified(session)
    _end(result, out.home)


def _inputs() -> tuple[Path, ...]:
    """Return the bundled files.

    Raises:
        ConfigurationError: `demo_missing`; the installation is incomplete.
    """
    paths = tuple(DEMO / name for name in INPUTS)
    for path in paths:
        if not path.is_file():
            raise ConfigurationError(
                "demo_missing",
                "the bundled case is not part of this installation",
                where=str(path),
                hint="install Viano from its repository or its wheel again",
            )
    return paths


def _introduce(out: Output, report: Path, *, known: bool, finished: bool) -> None:
    if out.json:
        return
    if finished:
        click.echo(
            f"{CASE_ID} was diagnosed in {out.home} before; this run replays it without asking the analyst."
        )
        return
    if known:
        click.echo(f"{CASE_ID} is there and not finished; it continues where it stopped.")
        return
    click.echo(f"A bundled case, imported as {CASE_ID}. Nobody told Viano what is wrong. The tester wrote:\n")
    for line in report.read_text(encoding="utf-8").splitlines():
        click.echo(f"  │ {line}" if line else "  │")
    click.echo(f"\nWith it came {DEMO / INPUTS[1]} (configuration, log, tables) and {INPUTS[2]} (C++).\n")


def _verified(session: Session) -> None:
    outcome = session.verify(CASE_ID)
    counts, problems = outcome["checked"], outcome["problems"]
    verdict = (
        "everything holds" if not problems else f"{len(problems)} problems, see viano case verify {CASE_ID}"
    )
    seen = f"{counts['evidence']} evidence records, {counts['artifacts']} artifacts"
    click.echo(f"\nChecked against the inputs: {seen}; {verdict}.")
    if problems:
        raise SystemExit(1)


def _end(result: PhaseResult, home: Path) -> None:
    report_stop(result, CASE_ID, home=home, provider=PROVIDER)
    raise SystemExit(STATUS_EXIT[result.status])
