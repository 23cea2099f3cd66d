"""`viano corpus`: list, build, run and report known-bug corpora."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from viano_assets.cli.options import Output, common, emit
from viano_assets.evaluation.corpus import Corpus, build_corpus, corpus_named, corpus_of_folder, find_corpora
from viano_assets.evaluation.recipes import archive_cache
from viano_assets.evaluation.stored import CorpusFolder, check_corpus_name, read_document

if TYPE_CHECKING:
    from resources.corpus_runs import Outcome

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.group()
def corpus() -> None:
    """Build, run and report known-bug corpora."""


def _corpora(home: Path) -> dict[str, Corpus]:
    return find_corpora(home / "config" / "corpora")


@corpus.command("list")
@common
def list_(out: Output) -> None:
    """List the known corpora and what the home holds of them."""
    known = _corpora(out.home)
    held = out.home / "corpora"
    names = set(known) | {p.parent.name for p in held.glob("*/corpus.json")}
    rows: list[dict[str, Any]] = []
    for name in sorted(names):
        folder = CorpusFolder(out.home, name)
        built = folder.built()
        rows.append(
            {
                "corpus": name,
                "title": known[name].spec.title if name in known else "",
                "built": len(built["bugs"]) if built else 0,
                "runs": folder.run_ids(),
            }
        )
    lines = [f"{r['corpus']:<20} {r['built']:>4} cases  {len(r['runs']):>3} runs  {r['title']}" for r in rows]
    emit(out, {"corpora": rows}, "\n".join(lines) or "No corpus is known.")


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
        told=lambda text: click.echo(text, err=True),
    )
    document = {
        "corpus": name, "imported": built.imported, "present": built.present, "sha256": built.sha256,
        "skipped": [{"bug_id": b, "code": c, "message": m} for b, c, m in built.skipped],
    }  # fmt: skip
    text = f"{built.imported} imported, {built.present} there already, {len(built.skipped)} left out."
    emit(out, document, f"{text}\nNext: viano corpus run {name}")
    raise SystemExit(3 if built.skipped and not built.imported and not built.present else 0)


@corpus.command()
@click.argument("name")
@click.option("--provider", help="Provider profile (default: the one the configuration names).")
@click.option("--threads", type=click.IntRange(1, 64), default=2, show_default=True, help="Cases at once.")
@click.option("--only", multiple=True, help="A bug id; may be given several times.")
@common
def run(out: Output, name: str, provider: str | None, threads: int, only: tuple[str, ...]) -> None:
    """Analyse every case of corpus NAME in new revisions, judge them, write the report.

    A run that was interrupted is continued; finished cases are not repeated.
    """
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415
    from resources.session import Session  # noqa: PLC0415

    runs = CorpusRuns(Session.open(out.home, provider=provider), check_corpus_name(name))
    unfinished = runs.open_run()
    run_id = unfinished or runs.start(only=only)
    click.echo(f"{'Continuing' if unfinished else 'Starting'} {run_id}", err=True)

    def told(item: Outcome, done: int, total: int) -> None:
        click.echo(f"{done:>4} of {total}  {item.bug_id:<28} {item.code or item.status}", err=True)

    outcomes = runs.work(run_id, threads=threads, told=told)
    figures = runs.judge(run_id, outcomes)
    emit(out, figures, _text(runs.folder, figures))


@corpus.command()
@click.argument("name")
@click.option("--run", "run_id", help="A run (default: the last judged one).")
@common
def report(out: Output, name: str, run_id: str | None) -> None:
    """Show the report of the last run of corpus NAME."""
    from viano_assets.errors import InputError  # noqa: PLC0415

    folder = CorpusFolder(out.home, name)
    judged = [one for one in folder.run_ids() if folder.run(one, "summary.json").is_file()]
    chosen = run_id or (judged[-1] if judged else None)
    if chosen is None or chosen not in judged:
        raise InputError(
            "no_report", "there is no judged run", where=run_id or name, hint=f"viano corpus run {name}"
        )
    figures = read_document(folder.run(chosen, "summary.json"))
    emit(out, figures, folder.run(chosen, "report.md").read_text(encoding="utf-8"))


def _text(folder: CorpusFolder, figures: dict[str, Any]) -> str:
    confirmed = f"confirmed {figures['confirmed']} of {figures['defects']} defects"
    controls = f"controls: {figures['controls_right']} of {figures['controls']} judged rightly"
    lines = [
        f"{figures['run_id']}: {figures['cases']} cases, {figures['failed']} without diagnosis",
        f"{confirmed}, {figures['confirmed_right']} rightly",
        f"{controls}, {figures['overclaims']} overclaims",
    ]
    if figures["worse"]:
        lines.append(f"worse than {figures['compared_with']}: {', '.join(figures['worse'])}")
    return "\n".join([*lines, f"Report: {folder.run(figures['run_id'], 'report.md')}"])
