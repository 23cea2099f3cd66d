"""Reprocessing: forty times one case, on any change that matters, and never for money unasked."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from resources.corpus_runs import fingerprint
from resources.dagster_viano import VianoResource
from resources.session import Session
from tests.support.graph import small_case
from tests.support.small_corpus import write_corpus
from viano_assets.automation.corpus_sensors import corpus_reprocess
from viano_assets.case.reopening import new_revision
from viano_assets.data_files import PROMPTS
from viano_assets.errors import InputError
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.drive import drive
from viano_assets.phases.protocols import DispatchStatus, Phase

ROUNDS = 40

REMOTE = """
[providers.paid]
type = "openai_compatible"
base_url = "https://models.example.org/v1"
model = "{model}"
"""


@pytest.mark.parametrize("mode", ["joint", "separate"])
def test_a_case_can_be_reprocessed_forty_times(tmp_path: Path, mode: str) -> None:
    """The limit of prior documents is 32, and prompts must stay the same from run to run."""
    home = tmp_path / "home"
    small_case(home, "BUG-1")
    session = Session.open(home, planning_mode=mode)
    for number in range(ROUNDS):
        if number:
            new_revision(session.store, "BUG-1", reason="corpus", prior_generations="exclude")
        for phase in (Phase.INTERPRETATION, Phase.HYPOTHESES):
            result = asyncio.run(drive(session.store, session.builders[phase], phase, "BUG-1"))
            assert result.status is DispatchStatus.COMPLETED
    head = session.store.latest("BUG-1")
    assert head.revision == ROUNDS

    def document(revision: int, name: str) -> dict[str, Any]:
        return dict(json.loads(session.store.read(head, f"analysis/hypotheses/{revision:04d}/{name}.json")))

    for revision in (2, ROUNDS):
        assert document(revision, "policy")["prior_generations"] == "exclude"
    first, last = (document(revision, "hypotheses")["hypotheses"] for revision in (2, ROUNDS))
    assert len(first) >= 3
    assert [item["title"] for item in first] == [item["title"] for item in last]


@pytest.mark.parametrize("prior", ["include", "exclude"])
def test_without_the_exclusion_the_limit_of_prior_documents_is_met(tmp_path: Path, prior: str) -> None:
    """What the forty rounds above are spared; without it they would prove nothing."""
    home = tmp_path / "home"
    small_case(home, "BUG-1")
    (home / "config").mkdir()
    (home / "config" / "analysis.local.toml").write_text("[hypotheses.limits]\nprior_documents = 2\n")
    session = Session.open(home, planning_mode="separate")

    def plan() -> None:
        for phase in (Phase.INTERPRETATION, Phase.HYPOTHESES):
            result = asyncio.run(drive(session.store, session.builders[phase], phase, "BUG-1"))
            assert result.status is DispatchStatus.COMPLETED

    plan()
    for _ in range(2):
        new_revision(session.store, "BUG-1", reason="comment", prior_generations=prior)
        plan()
    new_revision(session.store, "BUG-1", reason="comment", prior_generations=prior)
    if prior == "include":
        with pytest.raises(InputError, match="too_many_prior_documents"):
            plan()
    else:
        plan()


def test_prompts_settings_provider_and_code_each_change_the_fingerprint(tmp_path: Path) -> None:
    home, prompts = tmp_path / "home", tmp_path / "prompts"
    shutil.copytree(PROMPTS, prompts)
    config = home / "config"
    config.mkdir(parents=True)

    def now(provider: str | None = None, code: str = "1") -> str:
        return fingerprint(Session.open(home, provider=provider), prompts=prompts, code=code)

    first = now()
    assert now() == first
    seen = {first, now(code="2")}
    prompt = min(prompts.glob("*.txt"))
    prompt.write_text(prompt.read_text(encoding="utf-8") + "\nOne line more.\n", encoding="utf-8")
    seen.add(now())
    (config / "analysis.local.toml").write_text("[hypotheses]\ninitial_budget = 90\n")
    seen.add(now())
    (config / "llm.local.toml").write_text(REMOTE.format(model="one"))
    seen.add(now())
    seen.add(now(provider="paid"))
    (config / "llm.local.toml").write_text(REMOTE.format(model="two"))
    seen.add(now(provider="paid"))
    assert len(seen) == 7


def test_a_paid_provider_starts_nothing_by_itself(tmp_path: Path) -> None:
    """The sensor mints no revision and requests no run until a limit is set and an estimate fits it."""
    home = tmp_path / "home"
    store = CheckpointStore(home)
    build_corpus(store, home, corpus_of_folder("small", write_corpus(tmp_path / "bugs")), cache=tmp_path)
    before = {name: store.latest(name).record_sha256 for name in store.case_ids()}
    config = home / "config"
    config.mkdir()
    (config / "llm.local.toml").write_text('default_profile = "paid"\n' + REMOTE.format(model="one"))

    def tick(provider: str | None = None) -> dg.SensorResult:
        resource = VianoResource(home=str(home), provider=provider)
        with dg.DagsterInstance.ephemeral() as instance:
            context = dg.build_sensor_context(instance=instance, resources={"viano": resource})
            result = corpus_reprocess(context)
        assert isinstance(result, dg.SensorResult)
        return result

    for limit, reason in ((0, "max_tokens is 0"), (10, "estimate from")):
        (config / "corpus.local.toml").write_text(f"[reprocessing]\nmax_tokens = {limit}\n")
        refused = tick()
        assert not refused.run_requests
        assert reason in str(refused.skip_reason)
        assert {name: store.latest(name).record_sha256 for name in store.case_ids()} == before
        assert not (home / "corpora" / "small" / "runs").exists()
    assert tick("offline").run_requests
