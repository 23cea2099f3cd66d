"""The assets that judge a run of a known-bug corpus, one partition per corpus: evaluation and calibration.

The cases of the run are partitions of the case chain; here they are scored, calibrated and compared with the
run before. (Annotations are not postponed here: Dagster reads them when the asset is defined.)
"""

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
from pydantic import Field

from resources.dagster_viano import VianoResource
from resources.run_lock import run_lock
from viano_assets.assets.events import DATA_VERSION_TAG
from viano_assets.assets.metadata import failing, to_metadata
from viano_assets.canonical import sha256_hex
from viano_assets.errors import BusyError, VianoError
from viano_assets.evaluation.stored import CorpusFolder, stored_corpora

GROUP = "known_bugs"
EVALUATION = dg.AssetKey("corpus_evaluation")
CALIBRATION = dg.AssetKey("corpus_calibration")
CORPORA = "viano_corpora"
"""Name of the partition set; its keys are the names of built corpora."""

BUSY = "viano/busy"
"""Tag of a judging that met another owner of the corpus' runs: no failure of the judging, it comes again."""

corpora = dg.DynamicPartitionsDefinition(name=CORPORA)

PLOTS = {
    "reliability": "rate per level",
    "risk-coverage": "risk over coverage",
    "units": "budget versus correctness",
}
"""File of a plot to the name of its metadata entry."""

_CHECKS = {
    "not_worse": "No judged column is worse than in the last whole run of the same provider.",
    "calibration_holds": "Every level's rate lies in the interval of that run's snapshot.",
    "grounded": "Every stored piece of evidence verifies.",
}


def _check_specs() -> Sequence[dg.AssetCheckSpec]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # pinned for it: docs/dependencies.md
        return [
            dg.AssetCheckSpec(name, asset=EVALUATION, description=text, partitions_def=corpora)
            for name, text in _CHECKS.items()
        ]


def built_corpora(home: Path, besides: Container[str] = ()) -> list[str]:
    """Return the names of the corpora that the home holds cases of; others are no partitions.

    Args:
        home: the Viano home.
        besides: names that are known already; their files are not read again.
    """
    found = []
    for folder in stored_corpora(home):
        with suppress(VianoError):
            if folder.corpus not in besides and folder.built() is not None:
                found.append(folder.corpus)
    return found


class JudgeConfig(dg.Config):
    """Which run of the partition's corpus to judge, and how."""

    run_id: str | None = Field(default=None, description="The run; the newest if null.")
    as_it_stands: bool = Field(default=False, description="Judge although cases could still go on.")


@dg.asset(
    key=EVALUATION,
    group_name=GROUP,
    kinds={"python"},
    owners=["team:viano"],
    partitions_def=corpora,
    description="Correctness by code and baselines of a run of a known-bug corpus.",
    check_specs=_check_specs(),
)
def corpus_evaluation(
    context: dg.AssetExecutionContext, config: JudgeConfig, viano: VianoResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Judge a run and report it; while another process owns it, end with the tag `BUSY`."""
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415  # loads duckdb and scipy only when it runs

    with failing(), run_lock(context.instance.root_directory, context.run.run_id):
        runs = CorpusRuns(viano.session(), context.partition_key)
        known = runs.folder.run_ids()
        if not known:
            raise dg.Failure(f"the corpus {context.partition_key} has no run yet", allow_retries=False)
        run_id = config.run_id or known[-1]
        try:
            figures = runs.judge(run_id, as_it_stands=config.as_it_stands, told=context.log.info)
        except BusyError as error:
            context.instance.add_run_tags(context.run.run_id, {BUSY: error.code})
            raise
        found_out = run_checks(runs.folder, figures)
    context.log.info("%s judged: %s", run_id, figures)
    yield dg.MaterializeResult(
        metadata=evaluation_metadata(runs.folder, figures),
        check_results=[
            dg.AssetCheckResult(
                check_name=found.name,
                passed=found.passed,
                severity=found.severity,
                metadata=to_metadata(found.metadata),
            )
            for found in found_out
        ],
        data_version=dg.DataVersion(evaluation_version(runs.folder, run_id)),
    )


def moved_levels(folder: CorpusFolder, figures: Mapping[str, Any]) -> list[str]:
    """Return the levels whose rate left the interval of the snapshot before; none of a partial run."""
    from viano_assets.evaluation.snapshot import drifted, snapshot_before  # noqa: PLC0415  # loads scipy

    now = {item["snapshot_id"]: item for item in folder.snapshots()}.get(figures["snapshot_id"])
    before = None if now is None else snapshot_before(folder, now)
    return [] if now is None or before is None else drifted(before, now)


def evaluation_metadata(folder: CorpusFolder, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page of a judged run shows: figures, report, and each plot by itself."""
    from viano_assets.evaluation.report import without_pictures  # noqa: PLC0415  # loads scipy

    report = folder.run(figures["run_id"], "report.md")
    pictures = {name: report.with_name(f"{file}.png") for file, name in PLOTS.items()}
    return dict(
        to_metadata(
            {
                **figures,
                "report": without_pictures(report.read_text(encoding="utf-8", errors="replace")),
                **{name: path.read_bytes() if path.is_file() else None for name, path in pictures.items()},
                "file": str(report),
            }
        )
    )


def evaluation_version(folder: CorpusFolder, run_id: str) -> str:
    """Return the data version of a judged run: its id and the hash of its scores."""
    return f"{run_id}-{sha256_hex(folder.run(run_id, 'scores.json').read_bytes())[:16]}"


class Found(NamedTuple):
    """What a check of a judged run found."""

    name: str
    passed: bool
    severity: dg.AssetCheckSeverity
    metadata: Mapping[str, Any]


def run_checks(folder: CorpusFolder, figures: Mapping[str, Any]) -> list[Found]:
    """Return the checks of a judged run. What could not be verified is no error, but passes no check."""
    moved = moved_levels(folder, figures)
    broken, unknown = figures["not_grounded"], figures.get("not_verified", 0)
    warn, error = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
    return [
        Found("not_worse", not figures["worse"], warn, _names("columns that got worse", figures["worse"])),
        Found("calibration_holds", not moved, warn, _names("levels that moved", moved)),
        Found(
            "grounded",
            not broken and not unknown,
            error if broken else warn,
            {"cases that do not verify": broken, "cases that could not be verified": unknown},
        ),
    ]


def _names(what: str, names: Sequence[str]) -> dict[str, str]:
    return {what: ", ".join(names) or "none"}


def evaluation_event(folder: CorpusFolder, figures: Mapping[str, Any]) -> dg.AssetMaterialization:
    """Return the materialisation that `corpus_evaluation` would report of a run that was judged outside."""
    return dg.AssetMaterialization(
        EVALUATION,
        partition=folder.corpus,
        metadata=evaluation_metadata(folder, figures),
        tags={DATA_VERSION_TAG: evaluation_version(folder, str(figures["run_id"]))},
    )


def check_events(folder: CorpusFolder, figures: Mapping[str, Any]) -> list[dg.AssetCheckEvaluation]:
    """Return the check evaluations that go with `evaluation_event`."""
    return [
        dg.AssetCheckEvaluation(
            asset_key=EVALUATION,
            check_name=found.name,
            passed=found.passed,
            severity=found.severity,
            metadata=to_metadata(found.metadata),
            partition=folder.corpus,
        )
        for found in run_checks(folder, figures)
    ]


def calibration_event(folder: CorpusFolder) -> dg.AssetMaterialization | None:
    """Return what `corpus_calibration` would report, None before a whole run was judged."""
    snapshots = folder.snapshots()
    if not snapshots:
        return None
    return dg.AssetMaterialization(
        CALIBRATION,
        partition=folder.corpus,
        metadata=calibration_metadata(folder, snapshots[-1]),
        tags={DATA_VERSION_TAG: str(snapshots[-1].get("sha256"))},
    )


@dg.asset(
    key=CALIBRATION,
    deps=[EVALUATION],
    group_name=GROUP,
    kinds={"python"},
    owners=["team:viano"],
    partitions_def=corpora,
    output_required=False,
    description="The newest calibration snapshot of a corpus, which new diagnoses of its provider quote.",
)
def corpus_calibration(
    context: dg.AssetExecutionContext, viano: VianoResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Show the newest snapshot; nothing is shown before a whole run was judged."""
    with failing():
        folder = CorpusFolder(Path(viano.home), context.partition_key)
        snapshots = folder.snapshots()
    if not snapshots:
        context.log.info("no whole run of %s was judged yet", folder.corpus)
        return
    yield dg.MaterializeResult(
        metadata=calibration_metadata(folder, snapshots[-1]),
        data_version=dg.DataVersion(str(snapshots[-1].get("sha256"))),
    )


def calibration_metadata(folder: CorpusFolder, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page of a snapshot shows: a table a subject beside the plot."""
    from viano_assets.evaluation.report import calibration_table  # noqa: PLC0415  # loads scipy

    plot = folder.run(snapshot["run_id"], "reliability.png")
    return dict(
        to_metadata(
            {
                **{name: snapshot[name] for name in ("snapshot_id", "provider", "run_id", "made_at")},
                **{subject: calibration_table(snapshot, subject) for subject in sorted(snapshot["subjects"])},
                PLOTS["reliability"]: plot.read_bytes() if plot.is_file() else None,
            }
        )
    )
