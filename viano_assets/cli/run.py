"""`viano run`: drive one case through its phases and print what came out."""

from __future__ import annotations

import json
from pathlib import Path

import click

from viano_assets.cli.addressed import addressed, addressing
from viano_assets.cli.answering import answered_by, others_note, who
from viano_assets.cli.options import Output, common, one_line
from viano_assets.cli.progress import LiveProgress
from viano_assets.cli.stopping import run_until_stopped
from viano_assets.partitions import check_case_id
from viano_assets.phases.protocols import DispatchStatus, Phase, PhaseResult

EXIT_BLOCKED = 3
EXIT_DEFECT = 1

STATUS_EXIT = {
    DispatchStatus.COMPLETED: 0,
    DispatchStatus.RETRY_PENDING: EXIT_BLOCKED,
    DispatchStatus.DEFERRED: EXIT_BLOCKED,
    DispatchStatus.BLOCKED: EXIT_BLOCKED,
    DispatchStatus.REJECTED: EXIT_BLOCKED,
    DispatchStatus.PROGRESSED: EXIT_BLOCKED,
    DispatchStatus.ERROR: EXIT_DEFECT,
}


@click.command()
@click.argument("case_id", metavar="CASE")
@click.option(
    "--until",
    type=click.Choice([phase.value for phase in Phase]),
    default=Phase.CHANGE_REQUEST.value,
    show_default=True,
    help="Last phase to run.",
)
@click.option("--provider", help="Provider profile (default: the one the configuration names).")
@click.option("--planning-mode", type=click.Choice(["joint", "separate"]), help="Frozen by a revision.")
@click.option("--retry-id", help="Stable id that reopens an exhausted or misconfigured provider operation.")
@click.option("--attempt-id", help="Stable id of the attempt.")
@click.option("--explain", is_flag=True, help="Show which signals led to each place.")
@common
def run(
    out: Output,
    case_id: str,
    until: str,
    provider: str | None,
    planning_mode: str | None,
    retry_id: str | None,
    attempt_id: str | None,
    explain: bool,
) -> None:
    """Drive CASE through its phases; an interrupted run continues where it stopped."""
    from resources.session import Session  # noqa: PLC0415  # keeps `viano --help` fast
    from viano_assets.cli.render import print_result  # noqa: PLC0415
    from viano_assets.phases.diagnosis.view import case_view  # noqa: PLC0415

    check_case_id(case_id)
    with addressing(case_id, out.home, provider), LiveProgress(quiet=out.json) as progress:
        session = Session.open(
            out.home, provider=provider, planning_mode=planning_mode, progress=progress.report
        )
        before = session.store.latest(case_id).generation
        result = run_until_stopped(
            lambda: session.run(case_id, until=Phase(until), retry_id=retry_id, attempt_id=attempt_id)
        )
    head = session.store.latest(case_id)
    answers = answered_by(session.store, head, head.revision)
    asked = [link.provider.name for link in session.gateway.links]
    note = others_note(answers, asked, case_id)
    note = None if note is None else addressed(note, case_id, out.home, provider)
    view = case_view(session.store, head, head.revision) | {
        "answered_by": answers,
        "replayed": head.generation == before,
        "note": note,
    }
    if out.json:
        click.echo(json.dumps(view, ensure_ascii=False, allow_nan=False))
    else:
        print_result(session.store, head, out.home, view, explain=explain)
        if answers:
            again = "; replayed, nothing was asked" if view["replayed"] else ""
            click.echo(f"\nAnswered by {who(answers)}{again}.")
    if note is not None:
        click.echo(f"note: {one_line(note)}", err=True)
    report_stop(result, case_id, home=out.home, provider=provider)
    raise SystemExit(STATUS_EXIT[result.status])


def report_stop(result: PhaseResult, case_id: str, *, home: Path, provider: str | None = None) -> None:
    """Say on standard error why the run stopped before its end, with commands that can be copied."""
    if result.status is DispatchStatus.COMPLETED:
        return
    due = f"; due {result.not_before}" if result.not_before else ""
    code = result.code or result.status.value.lower()
    click.echo(
        f"error[{code}]: {result.phase} is {result.status}: {result.message}{due} ({case_id})", err=True
    )
    hint = result.hint or f"viano case show {case_id} says what is missing"
    click.echo(f"hint: {addressed(hint, case_id, home, provider)}", err=True)


@click.group()
def trial() -> None:
    """`viano trial run` is `viano run`."""


trial.add_command(run)
