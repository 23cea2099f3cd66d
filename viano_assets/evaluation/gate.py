"""Whether a corpus has to be reprocessed, and whether it may be: the fingerprint and the budget gate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from viano_assets.evaluation.stored import CorpusFolder, read_document
from viano_assets.phases.settings import read_toml, settings


class ReprocessingConfig(BaseModel):
    """Settings of reprocessing; file: config/corpus.example.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    max_tokens: Annotated[int, Field(ge=0)] = 0
    threads: Annotated[int, Field(ge=1, le=64)] = 4

    @classmethod
    def load(cls, path: str | Path) -> ReprocessingConfig:
        """Read the table `reprocessing`; a missing file gives the defaults.

        Raises:
            ConfigurationError: naming file and key.
        """
        return settings(cls, read_toml(path, ("reprocessing",))["reprocessing"], path, "reprocessing")


def last_run(folder: CorpusFolder) -> dict[str, Any] | None:
    """Return the `run.json` of the newest run, None before the first."""
    ids = folder.run_ids()
    return read_document(folder.run(ids[-1], "run.json")) if ids else None


def changed(folder: CorpusFolder, built: Mapping[str, Any], fingerprint: str) -> bool:
    """Say whether prompts, settings, provider, code or the corpus are others than in the last run."""
    run = last_run(folder)
    return run is None or (run["fingerprint"], run["corpus_sha256"]) != (fingerprint, built["sha256"])


def refusal(folder: CorpusFolder, config: ReprocessingConfig, *, remote: bool) -> str | None:
    """Return why reprocessing may not start by itself, None when it may.

    A paid provider needs a last judged run to estimate from, and an estimate within `max_tokens`.
    """
    if not remote:
        return None
    if config.max_tokens == 0:
        return "reprocessing.max_tokens is 0: only the offline analyst may reprocess by itself"
    judged = folder.judged_ids()
    if not judged:
        return f"nothing to estimate from; run it once: viano corpus run {folder.corpus}"
    rows = read_document(folder.run(judged[-1], "scores.json"))["rows"]
    tokens = sum((row.get("tokens_in") or 0) + (row.get("tokens_out") or 0) for row in rows)
    if tokens > config.max_tokens:
        return f"the last run took {tokens} tokens, reprocessing.max_tokens is {config.max_tokens}"
    return None
