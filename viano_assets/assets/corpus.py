"""The asset that judges a run of a known-bug corpus, with its report, plots and checks.

The cases of the run are partitions of the case chain; here they are scored, calibrated and compared with the
run before. (Annotations are not postponed here: Dagster reads them when the asset is defined.)
"""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from resources.dagster_viano import VianoResource
from viano_assets.assets.metadata import to_metadata

GROUP = "known_bugs"
EVALUATION = dg.AssetKey("corpus_evaluation")


class JudgeConfig(dg.Config):
    """Which run to judge."""

    corpus: str = Field(default="bundled", description="Name of a built corpus.")
    run_id: str | None = Field(default=None, description="The run; the newest if null.")


@dg.asset(
    key=EVALUATION,
    group_name=GROUP,
    kinds={"python"},
    owners=["team:viano"],
    description="Correctness by code, baselines and calibration of the last run of a known-bug corpus.",
    check_specs=[
        dg.AssetCheckSpec(
            "not_worse", asset=EVALUATION, description="No judged column is worse than in the run before."
        ),
        dg.AssetCheckSpec(
            "calibration_holds",
            asset=EVALUATION,
            description="Every level's rate lies in the interval of the snapshot before.",
        ),
        dg.AssetCheckSpec(
            "grounded", asset=EVALUATION, description="Every stored piece of evidence verifies."
        ),
    ],
)
def corpus_evaluation(
    context: dg.AssetExecutionContext, config: JudgeConfig, viano: VianoResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Judge a run and report it."""
    from resources.corpus_runs import CorpusRuns  # noqa: PLC0415  # loads duckdb and scipy only when it runs
    from viano_assets.evaluation.snapshot import drifted  # noqa: PLC0415

    runs = CorpusRuns(viano.session(), config.corpus)
    known = runs.folder.run_ids()
    if not known:
        raise dg.Failure(f"the corpus {config.corpus} has no run yet", allow_retries=False)
    run_id = config.run_id or known[-1]
    before = runs.folder.snapshots()
    figures = runs.judge(run_id)
    context.log.info("%s judged: %s", run_id, figures)
    snapshots = {item["snapshot_id"]: item for item in runs.folder.snapshots()}
    now = snapshots[figures["snapshot_id"]]
    moved = drifted(before[-1], now) if before else []
    report = runs.folder.run(run_id, "report.md")
    pictures = {
        name: report.with_name(f"{name}.png").read_bytes() for name in ("reliability", "risk-coverage")
    }
    text = report.read_text(encoding="utf-8")
    yield dg.MaterializeResult(
        metadata=to_metadata({**figures, "report": text, **pictures, "file": str(report)}),
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


def _check(name: str, passed: bool, what: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=to_metadata({"what": what or "nothing"}),
    )
