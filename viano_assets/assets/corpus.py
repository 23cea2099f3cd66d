"""The assets that judge a run of a known-bug corpus, one partition per corpus: evaluation and calibration.

The cases of the run are partitions of the case chain; here they are scored, calibrated and compared with the
run before. (Annotations are not postponed here: Dagster reads them when the asset is defined.)
"""

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from resources.dagster_viano import VianoResource
from resources.run_lock import run_lock
from viano_assets.assets.metadata import failing, to_metadata
from viano_assets.errors import VianoError
from viano_assets.evaluation.stored import CorpusFolder, stored_corpora

GROUP = "known_bugs"
EVALUATION = dg.AssetKey("corpus_evaluation")
CALIBRATION = dg.AssetKey("corpus_calibration")
CORPORA = "viano_corpora"
"""Name of the partition set; its keys are the names of built corpora."""

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
    """Judge a run and report it."""
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415  # loads duckdb and scipy only when it runs

    with failing(), run_lock(context.instance.root_directory, context.run.run_id):
        runs = CorpusRuns(viano.session(), context.partition_key)
        known = runs.folder.run_ids()
        if not known:
            raise dg.Failure(f"the corpus {context.partition_key} has no run yet", allow_retries=False)
        run_id = config.run_id or known[-1]
        figures = runs.judge(run_id, as_it_stands=config.as_it_stands, told=context.log.info)
        moved = moved_levels(runs.folder, figures)
    context.log.info("%s judged: %s", run_id, figures)
    yield dg.MaterializeResult(
        metadata=evaluation_metadata(runs.folder, figures),
        check_results=[
            _check("not_worse", not figures["worse"], ", ".join(figures["worse"])),
            _check("calibration_holds", not moved, ", ".join(moved)),
            dg.AssetCheckResult(
                check_name="grounded",
                passed=figures["not_grounded"] == 0,
                metadata=to_metadata({"cases": figures["not_grounded"]}),
            ),
        ],
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
    return dict(
        to_metadata(
            {
                **figures,
                "report": without_pictures(report.read_text(encoding="utf-8")),
                **{name: report.with_name(f"{file}.png").read_bytes() for file, name in PLOTS.items()},
                "file": str(report),
            }
        )
    )


def _check(name: str, passed: bool, what: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=to_metadata({"what": what or "nothing"}),
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
    now = snapshots[-1]
    plot = folder.run(now["run_id"], "reliability.png")
    yield dg.MaterializeResult(
        metadata=to_metadata(
            {
                **{name: now[name] for name in ("snapshot_id", "provider", "run_id", "made_at")},
                **now["subjects"],
                PLOTS["reliability"]: plot.read_bytes() if plot.is_file() else None,
            }
        ),
        data_version=dg.DataVersion(str(now.get("sha256"))),
    )
