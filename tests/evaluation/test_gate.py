"""The budget gate lets nothing pass that was not measured with the same provider."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from viano_assets.evaluation.gate import NO_LIMIT, ReprocessingConfig, refusal
from viano_assets.evaluation.stored import CorpusFolder, write_document


def write_run(
    folder: CorpusFolder, number: int, provider: str, tokens: Sequence[int | None], *, whole: bool = True
) -> None:
    """Write a judged run whose cases took so many tokens each; None has no diagnosis."""
    run_id = f"small.r{number:04d}"
    texts = dict.fromkeys(
        ("corpus", "corpus_sha256", "prompts_sha256", "code_version", "fingerprint", "started_at"), "x"
    )
    cases = {f"B-{at}": f"B-{at}@r1" for at in range(len(tokens))}
    run: dict[str, Any] = {**texts, "run_id": run_id, "provider": provider, "whole": whole, "cases": cases}
    write_document(folder.run(run_id, "run.json"), {**run, "unreadable": {}})
    rows = [
        {"bug_id": f"B-{at}", "predictor": predictor, **taken}
        for at, each in enumerate(tokens)
        for predictor, taken in (
            ("viano", {"status": each and "confirmed", "tokens_in": each or 0, "tokens_out": 0}),
            ("bm25", {"status": None}),
        )
    ]
    write_document(folder.run(run_id, "scores.json"), {"rows": rows})


@pytest.mark.parametrize(("limit", "passes"), [(0, False), (2_999, False), (3_000, True), (NO_LIMIT, True)])
def test_the_estimate_is_the_cases_times_what_one_took(tmp_path: Path, limit: int, passes: bool) -> None:
    """The measured run was of three cases; one of them failed before it took what a diagnosis takes."""
    folder = CorpusFolder(tmp_path, "small")
    write_run(folder, 1, "paid", [200, 400, None])
    config = ReprocessingConfig(max_tokens=limit)
    assert (refusal(folder, config, remote=True, provider="paid", cases=10) is None) is passes


@pytest.mark.parametrize("provider", ["offline", "other"])
def test_a_run_of_another_provider_is_no_measure(tmp_path: Path, provider: str) -> None:
    folder = CorpusFolder(tmp_path, "small")
    write_run(folder, 1, provider, [1, 1])
    write_run(folder, 2, "paid", [None, None])
    reason = refusal(folder, ReprocessingConfig(max_tokens=100), remote=True, provider="paid", cases=2)
    assert "nothing to estimate from" in str(reason)
    assert "viano corpus run small --provider paid" in str(reason)


def test_a_local_provider_needs_no_measure(tmp_path: Path) -> None:
    folder = CorpusFolder(tmp_path, "small")
    assert refusal(folder, ReprocessingConfig(), remote=False, provider="offline", cases=9) is None


def test_a_limit_without_any_run_starts_nothing_unless_there_is_no_limit(tmp_path: Path) -> None:
    folder = CorpusFolder(tmp_path, "small")
    for limit, passes in ((10**9, False), (NO_LIMIT, True)):
        config = ReprocessingConfig(max_tokens=limit)
        assert (refusal(folder, config, remote=True, provider="paid", cases=1) is None) is passes
