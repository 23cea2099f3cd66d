"""`viano case`: import, list, show, verify, resume, reopen and transfer cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from viano_assets.case.intake import import_case
from viano_assets.case.lifecycle import stage_of
from viano_assets.case.packing import left_out
from viano_assets.cli.addressed import addressed, flags
from viano_assets.cli.answering import answered_by, provider_to_name
from viano_assets.cli.interruption import interrupted, next_step
from viano_assets.cli.options import Output, common, emit
from viano_assets.cli.progress import LiveProgress
from viano_assets.cli.transfer import egress, export, gc, import_package
from viano_assets.errors import InputError, PackageError
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import CaseRevision, check_case_id, parse_key
from viano_assets.phases.protocols import Progress
from viano_assets.phases.remedies import run_command

INPUT = click.Path(path_type=Path)


@click.group()
def case() -> None:
    """Import, list, show, verify, resume, reopen and transfer cases."""


for _command in (egress, export, import_package, gc):
    case.add_command(_command)


@case.command("import")
@click.option("--case-id", required=True, help="Name of the case, for example BUG-17.")
@click.option("--report", required=True, type=INPUT, help="The tester's report.")
@click.option("--diagnostics", type=INPUT, help="Logs, tables, configuration: ZIP, TAR or folder.")
@click.option("--source", type=INPUT, help="The source: ZIP, TAR or folder.")
@click.option("--name-encoding", help="Encoding of archive member names that carry no UTF-8 flag.")
@common
def import_(
    out: Output,
    case_id: str,
    report: Path,
    diagnostics: Path | None,
    source: Path | None,
    name_encoding: str | None,
) -> None:
    """Import a report with its diagnostics and source as a new case."""
    check_case_id(case_id)
    with LiveProgress(quiet=out.json) as progress:
        head = import_case(
            CheckpointStore(out.home),
            case_id=case_id,
            report=report,
            diagnostics=diagnostics,
            source=source,
            name_encoding=name_encoding,
            progress=lambda text: progress.report(Progress(case_id, "import", text, {})),
        )
    key = CaseRevision(case_id, head.revision).key
    skipped = left_out(source)
    document = {
        "case_id": case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "partition_key": key,
        "generation": head.generation,
        "state": head.manifest.lifecycle,
        "inputs": sorted(head.raw_inputs()),
        "left_out": skipped,
    }
    lines = [f"Imported {case_id} as partition {key}."]
    if skipped:
        history = " An archive that holds .git brings the history along." if ".git" in skipped else ""
        lines.append(f"Left out of the source folder: {', '.join(skipped)}.{history}")
    lines.append(f"Next: viano run {case_id}{flags(out.home, None)}")
    emit(out, document, "\n".join(lines))


@case.command("list")
@common
def list_(out: Output) -> None:
    """List the cases of the home with their states."""
    store = CheckpointStore(out.home)
    rows: list[dict[str, Any]] = []
    for case_id in store.case_ids():
        try:
            head = store.latest(case_id)
        except PackageError as error:
            rows.append({"case_id": case_id, "state": "DAMAGED", "error": error.code})
            continue
        rows.append(
            {
                "case_id": case_id,
                "state": head.manifest.lifecycle,
                "stage": stage_of(head.manifest.lifecycle, head.checkpoints, head.revision),
                "overlay": head.manifest.overlay.kind if head.manifest.overlay else None,
                "analysis_revision": head.revision,
                "partition_key": CaseRevision(case_id, head.revision).key,
                "generation": head.generation,
                "routing": head.manifest.routing,
            }
        )
    if out.json:
        click.echo(json.dumps({"cases": rows}))
        return
    from viano_assets.cli.render import print_case_list  # noqa: PLC0415

    print_case_list(rows, out.home)


@case.command()
@click.argument("case_id", metavar="CASE")
@click.option("--revision", type=int, help="An earlier analysis revision.")
@common
def show(out: Output, case_id: str, revision: int | None) -> None:
    """Show what is known of CASE: state, interpretation, hypotheses, diagnosis, evidence, spend.

    CASE may also be a partition key such as BUG-17@r1.
    """
    from viano_assets.phases.diagnosis.view import case_view  # noqa: PLC0415

    if "@" in case_id:
        case_id, revision = parse_key(case_id)
    check_case_id(case_id)
    store = CheckpointStore(out.home)
    head = store.latest(case_id)
    if revision is not None and not 1 <= revision <= head.revision:
        raise InputError(
            "unknown_revision",
            f"there is no revision {revision}",
            where=case_id,
            hint=f"revisions 1 to {head.revision} exist",
        )
    number = revision or head.revision
    step = next_step(head) if number == head.revision else None
    if step is not None:
        step = addressed(step, case_id, out.home, provider_to_name(out.home, store, head))
    view = case_view(store, head, number) | {
        "interrupted": interrupted(store, head, number),
        "answered_by": answered_by(store, head, number),
        "next": step,
    }
    if out.json:
        click.echo(json.dumps(view, ensure_ascii=False, allow_nan=False))
        return
    from viano_assets.cli.render import print_case, print_reading  # noqa: PLC0415

    print_reading(store, head, number)
    print_case(view, home=out.home)
    if view["next"]:
        click.echo(f"\nNext: {view['next']}")


@case.command()
@click.argument("case_id", metavar="CASE")
@click.option("--audit-history", is_flag=True, help="Also read every obsolete generation.")
@common
def verify(out: Output, case_id: str, audit_history: bool) -> None:
    """Check every hash, pointer, budget entry and cited excerpt of CASE."""
    from resources.session import Session  # noqa: PLC0415

    check_case_id(case_id)
    report = Session.open(out.home).verify(case_id, audit_history=audit_history)
    problems: list[dict[str, str]] = report["problems"]
    counts = report["checked"]
    lines = [f"{case_id}: {counts['artifacts']} artifacts, {counts['evidence']} evidence records"]
    lines += [f"  {problem['code']}: {problem['message']} ({problem['where']})" for problem in problems]
    lines.append("Everything holds." if not problems else f"{len(problems)} problems.")
    emit(out, report, "\n".join(lines))
    raise SystemExit(1 if problems else 0)


@case.command()
@click.argument("case_id", metavar="CASE")
@common
def resume(out: Output, case_id: str) -> None:
    """Lift a block or a deferral of CASE; then run it again."""
    from viano_assets.case.reopening import resume_case  # noqa: PLC0415

    store = CheckpointStore(out.home)
    head = resume_case(store, check_case_id(case_id))
    command = addressed(run_command(head), case_id, out.home, provider_to_name(out.home, store, head))
    emit(
        out,
        {
            "case_id": case_id,
            "generation": head.generation,
            "state": head.manifest.lifecycle,
            "next": command,
        },
        f"{case_id} is {head.manifest.lifecycle} again.\nNext: {command}",
    )


@case.command()
@click.argument("case_id", metavar="CASE")
@click.option("--comment", help="New information, as a comment of a person.")
@click.option("--attach", type=INPUT, multiple=True, help="A further file; may be given several times.")
@click.option(
    "--again", is_flag=True, help="Without new information: for another provider, prompt or policy."
)
@common
def reopen(out: Output, case_id: str, comment: str | None, attach: tuple[Path, ...], again: bool) -> None:
    """Start the next analysis revision of CASE; old revisions stay readable."""
    from viano_assets.case.reopening import new_revision, reopen_case  # noqa: PLC0415

    check_case_id(case_id)
    store = CheckpointStore(out.home)
    if again and not attach and not (comment or "").strip():
        head = new_revision(store, case_id, reason="again")
    else:
        head = reopen_case(store, case_id, comment=comment, attachments=attach)
    key = CaseRevision(case_id, head.revision).key
    emit(
        out,
        {
            "case_id": case_id,
            "analysis_revision": head.revision,
            "partition_key": key,
            "generation": head.generation,
            "state": head.manifest.lifecycle,
        },
        f"Reopened {case_id} as {key}.\nNext: viano run {case_id}{flags(out.home, None)}",
    )
