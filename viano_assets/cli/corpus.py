"""`viano corpus`: list, build, run and report known-bug corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viano_assets.cli.options import Output, common, emit, one_line
from viano_assets.errors import BlockedError, InputError, VianoError
from viano_assets.evaluation.corpus import Corpora, build_corpus, corpus_named, corpus_of_folder, find_corpora
from viano_assets.evaluation.gate import ReprocessingConfig, patience_ends
from viano_assets.evaluation.owner import Owner
from viano_assets.evaluation.recipes import archive_cache
from viano_assets.evaluation.stored import CorpusFolder, is_whole, read_document

if TYPE_CHECKING:
    from resources.corpus_runs import CorpusRuns, Outcome

EXIT_OPEN = 3
"""Status when cases have no diagnosis, or a run is not judged because cases wait."""

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.group()
def corpus() -> None:
    """Build, run and report known-bug corpora."""


def _corpora(home: Path) -> Corpora:
    return find_corpora(home / "config" / "corpora")


@corpus.command("list")
@common
def list_(out: Output) -> None:
    """List the known corpora and what the home holds of them."""
    known = _corpora(out.home)
    held = out.home / "corpora"
    refused = {name: str(error) for name, error in known.refused.items()}
    rows: list[dict[str, Any]] = []
    for name in sorted(set(known) | {p.parent.name for p in held.glob("*/corpus.json")}):
        try:
            folder = CorpusFolder(out.home, name)
            built = folder.built()
            problems = [str(error) for error in folder.problems()]
        except VianoError as error:
            refused[name] = str(error)
            continue
        rows.append(
            {
                "corpus": name,
                "title": known[name].spec.title if name in known else "",
                "built": len(built["bugs"]) if built else 0,
                "runs": folder.run_ids(),
                "problems": problems,
            }
        )
    lines = [f"{r['corpus']:<20} {r['built']:>4} cases  {len(r['runs']):>3} runs  {r['title']}" for r in rows]
    emit(
        out,
        {"corpora": rows, "left_out": [{"corpus": n, "message": m} for n, m in sorted(refused.items())]},
        "\n".join(lines) or "No corpus is known.",
    )
    for name, message in sorted(refused.items()):
        click.echo(f"left out: {one_line(name)}: {one_line(message)}", err=True)
    for problem in [problem for row in rows for problem in row["problems"]]:
        click.echo(f"damaged: {one_line(problem)}", err=True)


@corpus.command()
@click.argument("name")
@click.option("--folder", type=FOLDER, help="Build NAME from a folder of case folders.")
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Folder of source archives.")
@click.option("--only", multiple=True, help="A bug id; may be given several times.")
@common
def build(out: Output, name: str, folder: Path | None, cache: Path | None, only: tuple[str, ...]) -> None:
    """Import the known bugs of corpus NAME as cases; what cannot be had is left out and named."""
    from viano_assets.package.store import CheckpointStore  # noqa: PLC0415

    chosen = corpus_of_folder(name, folder) if folder else corpus_named(name, _corpora(out.home))
    built = build_corpus(
        CheckpointStore(out.home),
        out.home,
        chosen,
        cache=cache or archive_cache(out.home),
        only=only,
        told=lambda text: click.echo(one_line(text), err=True),
    )
    document = {
        "corpus": name, "imported": built.imported, "present": built.present, "sha256": built.sha256,
        "skipped": [{"bug_id": b, "code": c, "message": m} for b, c, m in built.skipped],
    }  # fmt: skip
    text = f"{built.imported} imported, {built.present} there already, {len(built.skipped)} left out."
    emit(out, document, f"{text}\nNext: viano corpus run {name}")
    raise SystemExit(EXIT_OPEN if built.skipped else 0)


@corpus.command()
@click.argument("name")
@click.option("--provider", help="Provider profile (default: the one the configuration names).")
@click.option("--threads", type=click.IntRange(1, 64), default=2, show_default=True, help="Cases at once.")
@click.option("--only", multiple=True, help="A bug id; may be given several times. Makes a partial run.")
@click.option("--new", is_flag=True, help="Leave a run that was not finished and start another.")
@click.option("--as-it-stands", is_flag=True, help="Judge also while a provider has put cases off.")
@common
def run(
    out: Output,
    name: str,
    provider: str | None,
    threads: int,
    only: tuple[str, ...],
    new: bool,
    as_it_stands: bool,
) -> None:
    """Analyse every case of corpus NAME in new revisions, judge them, write the report.

    A run that was interrupted is continued with its provider and its cases; finished cases are not repeated.
    Exit status 3 when a case has no diagnosis, or is put off and the run is not judged yet.
    """
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415
    from resources.session import Session  # noqa: PLC0415

    folder = CorpusFolder(out.home, name)
    _check_built(folder)
    owner = Owner(folder)
    with owner.held():
        run_id = None if new else folder.open_run()
        begun = None if run_id is None else folder.run_document(run_id)
        if begun is not None:
            check_continued(begun, provider, only)
            provider = begun["provider"]
        runs = CorpusRuns(Session.open(out.home, provider=provider), name, owner)
        run_id = run_id or runs.start(only=only)
        stored = runs.run(run_id)
        _tell_run(runs, stored, continued=begun is not None)
        outcomes = runs.work(run_id, threads=threads, told=_tell_outcome)
        config = ReprocessingConfig.load(runs.session.config / "corpus.local.toml")
        until = patience_ends(stored, config)
        as_it_stands = as_it_stands or datetime.now(UTC) >= until
        if not as_it_stands:
            _check_put_off(stored, outcomes, until)
        figures = _judged(runs, run_id, outcomes, as_it_stands=as_it_stands)
    emit(out, figures, _text(runs.folder, figures))
    raise SystemExit(EXIT_OPEN if figures["failed"] else 0)


@corpus.command()
@click.argument("name")
@click.option("--run", "run_id", help="A run (default: the newest).")
@click.option("--as-it-stands", is_flag=True, help="Judge although cases could still go on.")
@common
def judge(out: Output, name: str, run_id: str | None, as_it_stands: bool) -> None:
    """Judge a run of corpus NAME, also again, from what its cases are now; no case is worked on.

    Exit status 3 when a case has no diagnosis.
    """
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415
    from resources.session import Session  # noqa: PLC0415

    folder = CorpusFolder(out.home, name)
    _check_built(folder)
    ids = folder.run_ids()
    if not ids:
        raise InputError("no_run", "the corpus has no run", where=name, hint=f"viano corpus run {name}")
    stored = folder.run_document(run_id or ids[-1])
    runs = CorpusRuns(Session.open(out.home), name)
    figures = _judged(runs, stored["run_id"], (), as_it_stands=as_it_stands)
    emit(out, figures, _text(runs.folder, figures))
    raise SystemExit(EXIT_OPEN if figures["failed"] else 0)


def check_continued(begun: Mapping[str, Any], provider: str | None, only: Sequence[str]) -> None:
    """Check that what the user asks for is what a run that is to be continued does.

    Raises:
        InputError: `corpus_run_differs`.
    """
    cases = sorted(begun["cases"].keys() | begun["unreadable"].keys())
    asked, has = "", ""
    if provider is not None and provider != begun["provider"]:
        asked, has = f"provider {provider}", f"provider {begun['provider']}"
    elif only and sorted(set(only)) != cases:
        asked, has = f"cases {', '.join(sorted(set(only)))}", f"{len(cases)} cases"
    if asked:
        raise InputError(
            "corpus_run_differs",
            f"an unfinished run has {has}, asked for was {asked}",
            where=begun["run_id"],
            hint=f"finish it: viano corpus run {begun['corpus']}; or leave it: the same command with --new",
        )


def _check_built(folder: CorpusFolder) -> None:
    """Refuse a corpus that the home has nothing of, before anything is made for it.

    Raises:
        InputError: `corpus_not_built`.
    """
    if not (folder.root / "corpus.json").exists() and not folder.run_ids():
        raise InputError(
            "corpus_not_built",
            "the home holds no case of the corpus",
            where=folder.corpus,
            hint=f"viano corpus build {folder.corpus}",
        )


def _tell_run(runs: CorpusRuns, stored: Mapping[str, Any], *, continued: bool) -> None:
    from resources.corpus_runs import fingerprint  # noqa: PLC0415

    known = len(runs.built["bugs"])
    cases = len(stored["cases"]) + len(stored["unreadable"])
    partial = "" if is_whole(stored) else f" (partial: {cases} of {known} cases)"
    verb = "Continuing" if continued else "Starting"
    click.echo(f"{verb} {stored['run_id']} with provider {stored['provider']}{partial}", err=True)
    if continued and fingerprint(runs.session) != stored["fingerprint"]:
        click.echo(
            "note: prompts, settings or code are others than when it began; --new starts afresh", err=True
        )
    for bug_id, code in sorted(stored["unreadable"].items()):
        click.echo(f"  left out  {one_line(bug_id):<28} {code}", err=True)


def _tell_outcome(item: Outcome, done: int, total: int) -> None:
    click.echo(f"{done:>4} of {total}  {one_line(item.bug_id):<28} {item.code or item.status}", err=True)
    if item.is_failed and item.message:
        click.echo(f"              {one_line(item.message)[:300]}", err=True)


def _check_put_off(stored: Mapping[str, Any], outcomes: Sequence[Outcome], until: datetime) -> None:
    """Say which cases a provider put off until when; a run with such cases is not judged yet.

    Raises:
        BlockedError: `corpus_run_waits`.
    """
    waiting = [item for item in outcomes if item.waits]
    for item in waiting:
        due = f"waits until {item.not_before}" if item.not_before else "waits"
        click.echo(f"  {due}  {one_line(item.bug_id)}: {one_line(item.message)}", err=True)
    if waiting:
        raise BlockedError(
            "corpus_run_waits",
            f"a provider put {len(waiting)} cases off; the run is not judged yet",
            where=stored["run_id"],
            hint=f"run the same command again when they are due (after {until:%Y-%m-%d %H:%M} UTC it judges "
            f"without them), or: viano corpus judge {stored['corpus']} --as-it-stands",
        )


def _judged(
    runs: CorpusRuns, run_id: str, outcomes: Sequence[Outcome], *, as_it_stands: bool
) -> dict[str, Any]:
    click.echo(f"judging {run_id} …", err=True)
    return runs.judge(
        run_id,
        outcomes,
        as_it_stands=as_it_stands,
        told=lambda text: click.echo(f"  {one_line(text)}", err=True),
    )


@corpus.command()
@click.argument("name")
@click.option("--run", "run_id", help="A run (default: the last judged one).")
@common
def report(out: Output, name: str, run_id: str | None) -> None:
    """Show the report of the last run of corpus NAME."""
    folder = CorpusFolder(out.home, name)
    _check_built(folder)
    judged = folder.judged_ids()
    chosen = run_id or (judged[-1] if judged else None)
    if chosen is None or chosen not in judged:
        raise InputError(
            "no_report", "there is no judged run", where=run_id or name, hint=f"viano corpus run {name}"
        )
    figures = read_document(folder.run(chosen, "summary.json"))
    text = folder.run(chosen, "report.md")
    if not text.is_file():
        raise InputError(
            "no_report",
            "the run has no report",
            where=str(text),
            hint=f"viano corpus judge {name} --run {chosen} writes it again",
        )
    emit(out, figures, text.read_text(encoding="utf-8", errors="replace"))


def _text(folder: CorpusFolder, figures: dict[str, Any]) -> str:
    confirmed = f"confirmed {figures['confirmed']} of {figures['defects']} defects"
    controls = f"controls: {figures['controls_right']} of {figures['controls']} judged rightly"
    lines = [
        f"{figures['run_id']}: {figures['cases']} cases, {figures['failed']} without diagnosis"
        + ("" if figures["whole"] else " (partial run)"),
        f"{confirmed}, {figures['confirmed_right']} rightly",
        f"{controls}, {figures['overclaims']} overclaims",
    ]
    if figures["worse"]:
        lines.append(f"worse than {figures['compared_with']}: {', '.join(figures['worse'])}")
    return "\n".join([*lines, f"Report: {folder.run(figures['run_id'], 'report.md')}"])
