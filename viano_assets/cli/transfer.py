"""`viano case egress|export|import-package|gc`: what would leave, and moving or tidying packages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viano_assets.cli.addressed import addressing
from viano_assets.cli.answering import answered_by, who
from viano_assets.cli.options import Output, common, emit, one_line
from viano_assets.errors import InputError
from viano_assets.package.store import CheckpointStore
from viano_assets.partitions import CaseRevision, check_case_id
from viano_assets.phases.protocols import DispatchStatus, Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from resources.llm.egress import EgressPreview
    from resources.session import Session

MODEL_PHASES = (Phase.INTERPRETATION, Phase.HYPOTHESES, Phase.INVESTIGATION, Phase.DIAGNOSIS)


@click.command()
@click.argument("case_id", metavar="CASE")
@click.option(
    "--phase",
    type=click.Choice([phase.value for phase in MODEL_PHASES]),
    required=True,
    help="The phase whose next model call is shown; the phases before it must have completed.",
)
@click.option("--provider", help="Provider profile (default: the one the configuration names).")
@common
def egress(out: Output, case_id: str, phase: str, provider: str | None) -> None:
    """Show the exact bytes that the next model call of CASE would send; nothing is sent or booked."""
    check_case_id(case_id)
    from resources.session import Session  # noqa: PLC0415

    with addressing(case_id, out.home):
        session = Session.open(out.home, provider=provider, preview=True)
        previews = _previews(session, case_id, Phase(phase), named=provider is not None)
    document = {
        "case_id": case_id,
        "phase": phase,
        "profile": session.gateway.profile,
        "previews": [item.as_json() for item in previews],
    }
    head = f"profile {session.gateway.profile}"
    if provider is None:
        others = [name for name in session.gateway.config.profile_names() if name != session.gateway.profile]
        known = f": {', '.join(others)}" if others else ""
        head += f" (the configured default; --provider NAME shows another{known})"
    emit(out, document, "\n\n".join([head, *map(_shown, previews)]))


def _previews(session: Session, case_id: str, phase: Phase, *, named: bool) -> Sequence[EgressPreview]:
    """Run the phase up to its model call.

    Raises:
        InputError: `no_model_call`; the phase is finished, waiting or cannot start.
    """
    from resources.llm.gateway import EgressShown  # noqa: PLC0415

    try:
        result = asyncio.run(session.run_phase(case_id, phase))
    except EgressShown as shown:
        return shown.previews
    answers = answered_by(session.store, result.head, result.head.revision)
    mine = [answer for answer in answers if phase.value in answer["phases"]]
    finished = result.status is DispatchStatus.COMPLETED
    message = f"{phase.value} of revision {result.head.revision} is {result.status.value} and calls no model"
    message += f"; it was answered by {who(mine)}" if finished and mine else ""
    message += f": {result.message}" if result.message else ""
    provider = session.gateway.profile if named else "NAME"
    profiles = ", ".join(session.gateway.config.profile_names())
    again = (
        "name a phase that has not run yet, or see what a new revision would send: viano case reopen "
        f"{case_id} --again, then viano case egress {case_id} --phase {phase.value} --provider {provider}"
        f" (known: {profiles})"
    )
    raise InputError("no_model_call", message, where=case_id, hint=result.hint or again)


def _shown(preview: EgressPreview) -> str:
    facts = preview.as_json()
    where = preview.url or "nothing leaves this process"
    lines = [f"{preview.provider} ({preview.model}): {where}"]
    if preview.problem:
        lines.append(f"  cannot be sent: {one_line(preview.problem)}")
    if preview.key_variable:
        lines.append(f"  key: value of {preview.key_variable} in the header {preview.key_header}")
    lines.append(f"  {facts['bytes']} bytes, sha256 {facts['sha256']}")
    lines += [f"  rule {name}: {count} places" for name, count in sorted(preview.applied.items())]
    lines += [f"  not enforced by the provider: {one_line(item)}" for item in preview.unenforced]
    return "\n".join([*lines, one_line(facts["body"])])


@click.command()
@click.argument("case_id", metavar="CASE")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: CASE.zip.")
@click.option("--generation", type=click.IntRange(min=1), help="An older generation as if it were the head.")
@click.option("--overwrite", is_flag=True, help="Replace the file when it exists.")
@common
def export(out: Output, case_id: str, output: Path | None, generation: int | None, overwrite: bool) -> None:
    """Write CASE with its whole history to one self-contained ZIP."""
    check_case_id(case_id)
    target = output or Path(f"{case_id}.zip")
    written = CheckpointStore(out.home).export(case_id, target, generation=generation, overwrite=overwrite)
    document: dict[str, Any] = {
        "case_id": case_id,
        "file": str(written.path),
        "sha256": written.sha256,
        "bytes": written.bytes,
        "generation": written.generation,
        "record_sha256": written.record_sha256,
    }
    text = f"Wrote {written.path} ({written.bytes} bytes, generation {written.generation})."
    emit(out, document, f"{text}\nElsewhere: viano case import-package {written.path.name}")


@click.command("import-package")
@click.argument("file", type=click.Path(path_type=Path))
@common
def import_package(out: Output, file: Path) -> None:
    """Add the case of an exported package FILE to this home; either all of it or nothing."""
    if not file.is_file():
        raise InputError("missing_input", "there is no such file", where=str(file), hint="check the path")
    head = CheckpointStore(out.home).import_package(file)
    key = CaseRevision(head.case_id, head.revision).key
    document = {
        "case_id": head.case_id,
        "package_id": head.manifest.package_id,
        "analysis_revision": head.revision,
        "partition_key": key,
        "generation": head.generation,
        "state": head.manifest.lifecycle,
    }
    emit(
        out,
        document,
        f"Imported the package of {head.case_id} ({key}).\nNext: viano case show {head.case_id}",
    )


@click.command()
@click.argument("case_id", metavar="CASE")
@click.option("--delete", is_flag=True, help="Remove what was found; without it nothing is changed.")
@common
def gc(out: Output, case_id: str, delete: bool) -> None:
    """Find stored content of CASE that no generation names, left by writers that died."""
    check_case_id(case_id)
    report = CheckpointStore(out.home).collect_garbage(case_id, dry_run=not delete)
    document = {
        "case_id": case_id,
        "objects": len(report.objects),
        "bytes": report.bytes,
        "removed": report.removed,
    }
    found = f"{len(report.objects)} objects, {report.bytes} bytes"
    if report.removed:
        text = f"Removed {found}."
    elif report.objects:
        text = f"Found {found} that nothing names.\nRemove them with: viano case gc {case_id} --delete"
    else:
        text = "Nothing to remove."
    emit(out, document, text)
