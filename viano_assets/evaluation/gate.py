"""Whether a corpus has to be reprocessed, and whether it may be: the fingerprint and the budget gate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.errors import PackageError
from viano_assets.evaluation.stored import CorpusFolder, damaged, read_document
from viano_assets.phases.settings import read_toml, settings

NO_LIMIT = -1
"""`max_tokens` that lets any provider reprocess by itself, without an estimate."""

VIANO = "viano"
"""Predictor of the rows that are Viano's own; the module of scores loads scipy."""


class ReprocessingConfig(BaseModel):
    """Settings of reprocessing; file: config/corpus.example.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    max_tokens: Annotated[int, Field(ge=NO_LIMIT)] = 0
    threads: Annotated[int, Field(ge=1, le=64)] = 4
    patience_hours: Annotated[int, Field(ge=0, le=720)] = 12

    @classmethod
    def load(cls, path: str | Path) -> ReprocessingConfig:
        """Read the table `reprocessing`; a missing file gives the defaults.

        Raises:
            ConfigurationError: naming file and key.
        """
        return settings(cls, read_toml(path, ("reprocessing",))["reprocessing"], path, "reprocessing")


def changed(folder: CorpusFolder, built: Mapping[str, Any], provider: str, fingerprint: str) -> bool:
    """Say whether prompts, settings, provider, code or the corpus are others than in its last whole run.

    Args:
        folder: the corpus.
        built: its `corpus.json`.
        provider: the profile whose runs count.
        fingerprint: what a run would have now.
    """
    runs = folder.runs_of(provider)
    return not runs or (runs[-1]["fingerprint"], runs[-1]["corpus_sha256"]) != (fingerprint, built["sha256"])


def tokens_per_case(folder: CorpusFolder, provider: str) -> tuple[str, float] | None:
    """Return the newest judged run of a provider that took tokens, and how many a diagnosis took in it.

    Cases without diagnosis took less than they will, so they do not count.
    """
    for run_id in reversed(folder.judged_ids()):
        try:
            run, scores = folder.run_document(run_id), read_document(folder.run(run_id, "scores.json"))
        except PackageError:
            continue
        taken = [
            row["tokens_in"] + row["tokens_out"]
            for row in scores["rows"]
            if row["predictor"] == VIANO
            and row.get("status") is not None
            and isinstance(row.get("tokens_in"), int)
            and isinstance(row.get("tokens_out"), int)
        ]
        if run["provider"] == provider and sum(taken):
            return run_id, sum(taken) / len(taken)
    return None


def refusal(
    folder: CorpusFolder, config: ReprocessingConfig, *, remote: bool, provider: str, cases: int
) -> str | None:
    """Return why reprocessing may not start by itself, None when it may.

    A paid provider needs a judged run of its own to estimate from, and an estimate within `max_tokens`.

    Args:
        folder: the corpus.
        config: the limit.
        remote: whether the provider is not local.
        provider: its profile.
        cases: how many cases are to be worked on.
    """
    if not remote or config.max_tokens == NO_LIMIT:
        return None
    if config.max_tokens == 0:
        return "reprocessing.max_tokens is 0: only the offline analyst may reprocess by itself"
    measured = tokens_per_case(folder, provider)
    if measured is None:
        command = f"viano corpus run {folder.corpus} --provider {provider}"
        return f"nothing to estimate from: no judged run of {provider} took tokens; run it once: {command}"
    run_id, each = measured
    tokens = round(each * cases)
    if tokens > config.max_tokens:
        return (
            f"{cases} cases at {each:.0f} tokens as in {run_id} are {tokens} tokens, "
            f"reprocessing.max_tokens is {config.max_tokens}"
        )
    return None


def patience_ends(run: Mapping[str, Any], config: ReprocessingConfig) -> datetime:
    """Return until when a run waits for cases that a provider put off.

    Raises:
        PackageError: `evaluation_damaged` when its start is no time.
    """
    try:
        started = datetime.fromisoformat(run["started_at"])
    except ValueError as error:
        raise damaged(Path(run["run_id"]) / "run.json", "its start is no time") from error
    started = started if started.tzinfo else started.replace(tzinfo=UTC)
    return started + timedelta(hours=config.patience_hours)
