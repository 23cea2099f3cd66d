from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.forger import Forger, edited
from tests.support.memory_store import MemoryStore
from tests.support.planning import SEPARATE
from tests.support.reading import (
    LINES,
    assemble,
    candidate,
    fair_model,
    hypotheses_answer,
    interpretation_answer,
    new_case,
)
from tests.support.scripted_gateway import Halted, ScriptedGateway, Unusable
from viano_assets.canonical import sha256_hex
from viano_assets.case.model import SourceType
from viano_assets.errors import (
    BlockedError,
    BusyError,
    ConfigurationError,
    ContractError,
    InputError,
    StaleHeadError,
)
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.common import invalid_attempts, read_json
from viano_assets.phases.hypotheses.accepted import load_hypotheses
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.hypotheses.config import HypothesisConfig, HypothesisLimits
from viano_assets.phases.hypotheses.summary import hypotheses_text
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.protocols import CallOutcome, DispatchStatus, Operation, Phase, Store

DONE = DispatchStatus.COMPLETED
FOLDER = "analysis/hypotheses/0001"


async def interpreted(store: MemoryStore | None = None, lines: Any = LINES) -> Any:
    store = store or MemoryStore()
    if not store.exists("BUG-1"):
        new_case(store, lines)
    result = await CaseInterpreter(store, ScriptedGateway(fair_model), SEPARATE).build("BUG-1")
    assert result.status is DONE
    return store


def bad() -> dict[str, Any]:
    answer = hypotheses_answer()
    answer["candidates"][1]["source_ids"] = ["S99"]
    return answer


async def test_three_generations_and_the_pointers_of_the_contract() -> None:
    store = await interpreted()
    before = store.latest("BUG-1")
    result = await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")
    head = result.head
    assert (result.status, head.generation) == (DONE, before.generation + 3)
    assert [c.event for c in head.checkpoints[-3:]] == [
        "hypotheses_started",
        "model_round_recorded",
        "hypotheses_published",
    ]
    assert set(head.checkpoints[-3].declares) == {f"{FOLDER}/policy.json", f"{FOLDER}/context.json"}
    names = {f"{FOLDER}/{name}" for name in ("hypotheses.json", "registry.json", "hypotheses.md")}
    assert set(head.checkpoints[-1].declares) == names
    assert head.manifest.lifecycle == "GENERATING_HYPOTHESES"
    assert {name: head.pointer(name) for name in head.manifest.pointers if "hypothes" in name} == {
        "hypotheses": f"{FOLDER}/hypotheses.json",
        "hypothesis_registry": f"{FOLDER}/registry.json",
        "hypotheses_summary": f"{FOLDER}/hypotheses.md",
        "hypothesis_context": f"{FOLDER}/context.json",
        "hypothesis_policy": f"{FOLDER}/policy.json",
    }
    assert {p: head.files[p] for p in before.files} == dict(before.files)
    assert head.manifest.package_id == before.manifest.package_id
    assert head.revision == before.revision


async def test_the_controller_gives_ids_states_roles_and_allocations() -> None:
    store = await interpreted()
    config = HypothesisConfig(initial_budget=70)
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model), config).build("BUG-1")).head
    document = read_json(store, head, f"{FOLDER}/hypotheses.json")
    assert document["budget_accounting"] == "not_started"
    shown = [
        (h["id"], h["position"], h["role"], h["status"], h["confidence"]) for h in document["hypotheses"]
    ]
    assert shown == [
        ("H1", 1, "tester_primary", "new", "unassessed"),
        ("H2", 2, "alternative", "new", "unassessed"),
        ("H3", 3, "alternative", "new", "unassessed"),
    ]
    assert [h["title"] for h in document["hypotheses"]] == [
        c["title"] for c in hypotheses_answer()["candidates"]
    ]
    expected = {"initial": 70, "unit": "investigation_units"}
    assert all(h["budget_allocation"] == expected for h in document["hypotheses"])


async def test_the_registry_records_every_creation_with_its_origin_under_the_cap() -> None:
    store = await interpreted()
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    registry = read_json(store, head, f"{FOLDER}/registry.json")
    path = f"{FOLDER}/hypotheses.json"
    facts = ("max_hypotheses", "created_count", "remaining_slots", "next_id")
    assert [registry[name] for name in facts] == [5, 3, 2, "H4"]
    assert registry["creations"] == [
        {
            "id": f"H{number}",
            "origin": {
                "path": path,
                "sha256": sha256_hex(store.read(head, path)),
                "pointer": f"/hypotheses/{number - 1}",
            },
            "budget_allocation": {"initial": 100, "unit": "investigation_units"},
        }
        for number in (1, 2, 3)
    ]


async def test_the_policy_is_saved_before_the_first_request() -> None:
    store = await interpreted()

    def look(request: Any) -> dict[str, Any]:
        policy = read_json(store, store.latest("BUG-1"), f"{FOLDER}/policy.json")
        assert (policy["min_hypotheses"], policy["max_hypotheses"], policy["initial_budget"]) == (2, 4, 9)
        assert policy["prior_generations"] == "include"
        (shown,) = request.sections("policy")
        assert shown == {"min_hypotheses": 2, "max_hypotheses": 4, "initial_budget": 9}
        return fair_model(request)

    config = HypothesisConfig(min_hypotheses=2, max_hypotheses=4, initial_budget=9)
    assert (await HypothesisBuilder(store, ScriptedGateway(look), config).build("BUG-1")).status is DONE


async def test_the_request_shows_catalogue_statements_policy_and_no_payload() -> None:
    store = await interpreted()
    gateway = ScriptedGateway(fair_model)
    await HypothesisBuilder(store, gateway).build("BUG-1")
    request = gateway.requests[0]
    assert request.prompt_version == "hypotheses_v1"
    assert len(request.sections("case")[0]["sources"]) == len(LINES)
    (shown,) = request.sections("interpretation")
    assert (shown["failure_stage"], shown["first_known_divergence"]) == ("I8", "I9")
    assert shown["statements"][0] == {
        "id": "I1",
        "pointer": "/observed_behavior/0",
        "category": "observed_behavior",
        "text": "After accepting order 4711 the table order_items stays empty.",
        "source_ids": ["S1"],
    }
    assert request.sections("prior_proposals") == [[]]
    text = "".join(message.content for message in request.messages)
    assert "kept as it is" not in text
    schema = request.json_schema["properties"]["candidates"]
    assert (schema["minItems"], schema["maxItems"]) == (3, 5)
    assert schema["items"]["properties"]["source_ids"]["items"]["enum"] == [f"S{n}" for n in range(1, 10)]
    assert set(schema["items"]["properties"]) == set(candidate(0))
    assert schema["items"]["additionalProperties"] is False


async def test_without_an_interpretation_the_phase_refuses_and_runs_nothing() -> None:
    """An earlier phase is never started silently."""
    store = MemoryStore()
    new_case(store)
    gateway = ScriptedGateway(fair_model)
    with pytest.raises(BlockedError, match="phase_missing"):
        await HypothesisBuilder(store, gateway).build("BUG-1")
    assert gateway.asked == 0
    assert store.latest("BUG-1").generation == 2


async def test_without_an_observation_there_is_no_invented_h1() -> None:
    lines = [line for line in LINES if line[1] not in {SourceType.OBSERVATION, SourceType.COMMENT}]
    store = MemoryStore()
    new_case(store, lines)
    answer = {
        **interpretation_answer(),
        **{name: [] for name, value in interpretation_answer().items() if isinstance(value, list)},
        "failure_stage": None,
        "first_known_divergence": None,
    }
    await CaseInterpreter(store, ScriptedGateway([answer]), SEPARATE).build("BUG-1")
    gateway = ScriptedGateway(fair_model)
    result = await HypothesisBuilder(store, gateway).build("BUG-1")
    assert (result.status, result.code) == (DispatchStatus.BLOCKED, "observation_missing")
    assert "observed" in result.message
    assert result.head.manifest.routing == "review"
    overlay = result.head.manifest.overlay
    assert overlay is not None
    assert (overlay.kind, overlay.phase) == ("blocked", "hypotheses")
    assert gateway.asked == 0
    assert not any("hypotheses.json" in path for path in result.head.files)
    assert (await HypothesisBuilder(store, gateway).build("BUG-1")).head.generation == result.head.generation


@pytest.mark.parametrize(
    "change",
    [
        {"max_hypotheses": 6},
        {"min_hypotheses": 2},
        {"initial_budget": 200},
        {"prior_generations": "exclude"},
        {"max_invalid_responses": 9},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_changed_policy_is_refused_while_pending(change: dict[str, Any]) -> None:
    """Interrupted with one policy, resumed with another: the old one is kept (B3)."""
    store = await interpreted()
    gateway = ScriptedGateway([Halted("retry_pending"), bad(), hypotheses_answer()])
    builder = HypothesisBuilder(store, gateway, HypothesisConfig())
    await builder.build("BUG-1")
    other = HypothesisBuilder(store, gateway, HypothesisConfig(**change))
    with pytest.raises(ConfigurationError, match=rf"policy_changed.*{next(iter(change))}"):
        await other.build("BUG-1")
    await builder.build("BUG-1")
    with pytest.raises(ConfigurationError, match="policy_changed"):
        await other.build("BUG-1", attempt_id="attempt-2")
    done = await HypothesisBuilder(store, gateway).build("BUG-1", attempt_id="attempt-2")
    assert done.status is DONE
    policy = read_json(store, done.head, f"{FOLDER}/policy.json")
    assert {name: policy[name] for name in HypothesisConfig().policy()} == HypothesisConfig().policy()


async def test_a_completed_batch_is_reused_whatever_configuration_or_attempt_id() -> None:
    store = await interpreted()
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    other = HypothesisConfig(max_hypotheses=9, initial_budget=999)
    for attempt in (None, "second", "third"):
        again = await HypothesisBuilder(store, ScriptedGateway([]), other).build(
            "BUG-1", attempt_id=attempt, retry_id="r"
        )
        assert (again.status, again.replayed, again.head.record_sha256) == (DONE, True, head.record_sha256)


async def test_a_new_policy_takes_effect_with_a_new_revision_and_old_allocations_stay() -> None:
    store = await interpreted()
    first = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    old = {p: store.read(first, p) for p in first.files}
    assemble(store, first, revision=2)
    await interpreted(store)
    config = HypothesisConfig(initial_budget=7)
    gateway = ScriptedGateway(fair_model)
    head = (await HypothesisBuilder(store, gateway, config).build("BUG-1")).head
    document = read_json(store, head, "analysis/hypotheses/0002/hypotheses.json")
    assert {h["budget_allocation"]["initial"] for h in document["hypotheses"]} == {7}
    assert (document["analysis_revision"], document["hypotheses"][0]["id"]) == (2, "H1")
    assert {p: store.read(head, p) for p in old} == old
    (prior,) = gateway.requests[0].sections("prior_proposals")
    assert [item["analysis_revision"] for item in prior] == [1]
    assert "untested initial proposals" in prior[0]["label"]
    assert [p["title"] for p in prior[0]["proposals"]] == [
        c["title"] for c in hypotheses_answer()["candidates"]
    ]
    assert set(prior[0]["proposals"][0]) == {"id", *candidate(0)}


async def test_prior_generations_can_be_excluded_and_are_never_truncated() -> None:
    store = await interpreted()
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    assemble(store, head, revision=2)
    await interpreted(store)
    limits = HypothesisLimits(prior_documents=1)
    gateway = ScriptedGateway(fair_model)
    head = (await HypothesisBuilder(store, gateway, HypothesisConfig(limits=limits)).build("BUG-1")).head
    assert len(gateway.requests[0].sections("prior_proposals")[0]) == 1
    assemble(store, head, revision=3)
    await interpreted(store)
    before = store.latest("BUG-1").generation
    with pytest.raises(InputError, match="too_many_prior_documents"):
        await HypothesisBuilder(store, gateway, HypothesisConfig(limits=limits)).build("BUG-1")
    assert store.latest("BUG-1").generation == before
    excluded = HypothesisConfig(limits=limits, prior_generations="exclude")
    assert (await HypothesisBuilder(store, gateway, excluded).build("BUG-1")).status is DONE
    assert gateway.requests[-1].sections("prior_proposals") == [[]]


async def test_an_invalid_batch_is_rejected_whole() -> None:
    """Two good candidates beside a bad one create no id, no allocation and no partial registry."""
    store = await interpreted()
    gateway = ScriptedGateway([bad()])
    result = await HypothesisBuilder(store, gateway).build("BUG-1")
    assert (result.status, result.code) == (DispatchStatus.ERROR, "invalid_answer")
    head = result.head
    assert head.pointer("hypotheses") is None
    assert not [p for p in head.files if p.endswith(("hypotheses.json", "registry.json"))]
    (path,) = head.checkpoints[-1].declares
    assert path.startswith(f"{FOLDER}/errors/")
    assert read_json(store, head, path)["validation_issues"][0]["category"] == "source_unknown"
    assert invalid_attempts(head, Phase.HYPOTHESES) == 1
    assert any("/calls/" in p for p in head.files)
    same = await HypothesisBuilder(store, gateway).build("BUG-1")
    assert (same.code, gateway.asked) == ("attempt_rejected", 1)


async def test_correcting_needs_a_new_attempt_id_and_carries_the_reasons() -> None:
    store = await interpreted()
    gateway = ScriptedGateway([bad(), hypotheses_answer()])
    await HypothesisBuilder(store, gateway).build("BUG-1")
    done = await HypothesisBuilder(store, gateway).build("BUG-1", attempt_id="attempt-2")
    assert done.status is DONE
    (issues,) = gateway.requests[1].sections("validation_issues")
    assert issues[0]["path"] == "/candidates/1/source_ids/0"
    assert (await HypothesisBuilder(store, ScriptedGateway([])).build("BUG-1")).replayed


async def test_invalid_answers_are_bounded_then_the_case_is_blocked() -> None:
    store = await interpreted()
    gateway = ScriptedGateway([bad(), Unusable("truncated_output"), bad(), bad()])
    statuses = []
    for number in range(4):
        result = await HypothesisBuilder(store, gateway).build("BUG-1", attempt_id=f"a{number}")
        statuses.append((result.status, result.code))
    assert statuses == [
        (DispatchStatus.ERROR, "invalid_answer"),
        (DispatchStatus.ERROR, "truncated_output"),
        (DispatchStatus.ERROR, "invalid_answer"),
        (DispatchStatus.BLOCKED, "invalid_answers_exhausted"),
    ]
    assert gateway.asked == 3
    assert not [p for p in store.latest("BUG-1").files if p.endswith("registry.json")]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Halted("retry_pending", not_before="2031-01-01T00:00:00Z"), DispatchStatus.RETRY_PENDING),
        (Halted("deferred", "ceiling", "2031-01-01T00:00:00Z"), DispatchStatus.DEFERRED),
        (Halted("blocked", "provider_configuration"), DispatchStatus.BLOCKED),
    ],
)
async def test_unreachable_infrastructure_is_distinct_from_invalid_answers(
    reply: Halted, status: DispatchStatus
) -> None:
    store = await interpreted()
    result = await HypothesisBuilder(store, ScriptedGateway([reply])).build("BUG-1")
    assert (result.status, result.code, result.not_before) == (status, reply.code, reply.not_before)
    assert result.head.manifest.lifecycle == "GENERATING_HYPOTHESES"
    assert result.head.manifest.overlay is not None
    assert result.head.manifest.overlay.phase == "hypotheses"
    assert invalid_attempts(result.head, Phase.HYPOTHESES) == 0


async def test_the_retry_id_reaches_the_gateway_and_resets_no_count() -> None:
    store = await interpreted()
    gateway = ScriptedGateway([bad(), Halted("blocked")])
    await HypothesisBuilder(store, gateway).build("BUG-1")
    result = await HypothesisBuilder(store, gateway).build("BUG-1", attempt_id="b", retry_id="fixed-key")
    assert [operation.retry_id for operation in gateway.operations] == [None, "fixed-key"]
    assert invalid_attempts(result.head, Phase.HYPOTHESES) == 1


@pytest.mark.parametrize(
    "name",
    ["hypotheses", "hypothesis_registry", "hypotheses_summary", "hypothesis_policy", "hypothesis_context"],
)
async def test_deleting_a_pointer_never_brings_a_second_batch(name: str) -> None:
    store = await interpreted()
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    head = store.commit(head, Change(event="pointer_lost", pointers={name: None}))
    gateway = ScriptedGateway(fair_model)
    with pytest.raises(ContractError, match="pointer_mismatch"):
        await HypothesisBuilder(store, gateway).build("BUG-1", attempt_id="again")
    assert (gateway.asked, store.latest("BUG-1").generation) == (0, head.generation)


@pytest.mark.parametrize(
    "lifecycle", ["RECEIVED", "ASSEMBLED", "INTERPRETING", "FAILED_TO_ANALYZE", "OUTPUT_READY"]
)
async def test_a_status_marker_never_brings_a_second_batch(lifecycle: str) -> None:
    store = await interpreted()
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    store.commit(head, Change(event="marked", lifecycle=lifecycle))
    assert (await HypothesisBuilder(store, ScriptedGateway([])).build("BUG-1")).replayed


@pytest.mark.parametrize("name", ["hypotheses.json", "registry.json"])
@pytest.mark.parametrize("pointed", [True, False])
async def test_declared_hypotheses_without_creation_history_are_refused(name: str, pointed: bool) -> None:
    """They are neither forgotten nor replaced by a fresh allocation."""
    store = await interpreted()
    head = store.latest("BUG-1")
    path = f"{FOLDER}/{name}"
    pointers = {"hypotheses": path} if pointed else {}
    store.commit(head, Change(event="planted", put={path: b"{}"}, pointers=pointers))
    gateway = ScriptedGateway(fair_model)
    with pytest.raises(ContractError, match="creation_history_missing"):
        await HypothesisBuilder(store, gateway).build("BUG-1")
    assert gateway.asked == 0


async def published() -> tuple[Forger, Head]:
    store = Forger()
    await interpreted(store)
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    return store, head


@pytest.mark.parametrize(
    ("path", "old", "new", "code"),
    [
        (f"{FOLDER}/hypotheses.json", b'"initial":100', b'"initial":900', "hypotheses_broken"),
        (f"{FOLDER}/hypotheses.json", b'"status":"new"', b'"status":"won"', "hypotheses_broken"),
        (f"{FOLDER}/registry.json", b'"remaining_slots":2', b'"remaining_slots":3', "hypotheses_broken"),
        (f"{FOLDER}/hypotheses.md", b"untested", b"affirmed", "hypotheses_broken"),
        (f"{FOLDER}/policy.json", b'"initial_budget":100', b'"initial_budget":900', "binding_broken"),
        (f"{FOLDER}/context.json", b'"joint_adopted":false', b'"joint_adopted":true_', "context_unbound"),
        ("analysis/interpretation/0001/interpretation.md", b"order", b"other", "interpretation_broken"),
        ("case/0001/case.json", b"stays empty", b"stays full!", "binding_broken"),
    ],
)
async def test_everything_that_was_accepted_is_checked_together(
    path: str, old: bytes, new: bytes, code: str
) -> None:
    store, head = await published()
    store.replace(path, edited(store, head, path, old, new))
    with pytest.raises(ContractError, match=code):
        await HypothesisBuilder(store, ScriptedGateway([])).build("BUG-1")
    with pytest.raises(ContractError, match=code):
        load_hypotheses(store, store.latest("BUG-1"), Phase.INVESTIGATION)


async def test_a_forged_call_does_not_lead_to_the_batch() -> None:
    store, head = await published()
    path = next(p for p in sorted(head.files) if p.startswith(f"{FOLDER}/calls/"))
    store.replace(path, edited(store, head, path, b"not configured", b"not c0nfigured"))
    with pytest.raises(ContractError, match="binding_broken"):
        await HypothesisBuilder(store, ScriptedGateway([])).build("BUG-1")


class DyingGateway(ScriptedGateway):
    """Records its round, then the process is gone."""

    async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
        await super().dispatch(store, operation, head)
        raise KeyboardInterrupt


async def test_a_confirmed_response_survives_a_crash_before_publication() -> None:
    store = await interpreted()
    with pytest.raises(KeyboardInterrupt):
        await HypothesisBuilder(store, DyingGateway(fair_model)).build("BUG-1")
    result = await HypothesisBuilder(store, ScriptedGateway([])).build("BUG-1")
    assert result.status is DONE


async def test_a_concurrently_stale_result_is_refused() -> None:
    store = await interpreted()

    class Slow(ScriptedGateway):
        async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
            outcome = await super().dispatch(store, operation, head)
            store.commit(outcome.head, Change(event="somebody_else"))
            return outcome

    with pytest.raises(StaleHeadError):
        await HypothesisBuilder(store, Slow(fair_model)).build("BUG-1")


async def test_a_busy_case_is_not_dispatched_twice() -> None:
    class Busy(MemoryStore):
        def lock(self, case_id: str) -> Any:
            raise BusyError("case_busy", "another process works on the case", where=case_id)

    gateway = ScriptedGateway([])
    with pytest.raises(BusyError):
        await HypothesisBuilder(Busy(), gateway).build("BUG-1")


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"context_bytes": 1000}, "context_too_large"),
        ({"output_bytes": 1000}, "hypotheses_too_large"),
        ({"summary_bytes": 100}, "summary_too_large"),
    ],
)
async def test_limits_refuse_and_never_truncate(limits: dict[str, int], code: str) -> None:
    store = await interpreted()
    config = HypothesisConfig(limits=HypothesisLimits(**limits))
    with pytest.raises(InputError, match=code):
        await HypothesisBuilder(store, ScriptedGateway(fair_model), config).build("BUG-1")
    assert store.latest("BUG-1").pointer("hypotheses") is None


async def test_the_default_limits_are_those_of_the_document() -> None:
    limits = HypothesisLimits()
    assert (limits.context_bytes, limits.prior_documents) == (2**20, 32)
    assert (limits.output_bytes, limits.summary_bytes) == (2**21, 2**21)
    config = HypothesisConfig()
    assert (config.min_hypotheses, config.max_hypotheses, config.initial_budget) == (3, 5, 100)


@pytest.mark.parametrize(
    "text",
    [
        "[hypotheses]\nmin_hypotheses = 6",
        "[hypotheses]\nmin_hypotheses = 0",
        "[hypotheses]\nmax_hypotheses = -1",
        "[hypotheses]\ninitial_budget = 0",
        "[hypotheses]\ninitial_budget = 1.5",
        "[hypotheses]\ninitial_budget = true",
        "[hypotheses]\nconfidence = 1",
    ],
)
def test_counts_and_budget_are_positive_integers_in_order(tmp_path: Path, text: str) -> None:
    path = tmp_path / "analysis.local.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        HypothesisConfig.load(path)
    assert (str(path), "hypotheses" in caught.value.message) == (caught.value.where, True)


async def test_the_summary_escapes_what_others_wrote() -> None:
    store = await interpreted()
    answer = hypotheses_answer()
    answer["candidates"][1]["title"] = "<script>*x*</script> [a](http://b)\n# no heading \x1b[31m"
    head = (await HypothesisBuilder(store, ScriptedGateway([answer])).build("BUG-1")).head
    text = store.read(head, f"{FOLDER}/hypotheses.md").decode()
    line = next(line for line in text.splitlines() if line.startswith("## H2"))
    assert line == ("## H2 \\<script\\>\\*x\\*\\</script\\> \\[a\\](http\\://b) # no heading \ufffd\\[31m")
    assert "\x1b" not in text


async def test_the_register_reads_as_predictions_and_refutations_with_the_words_of_the_report() -> None:
    store = await interpreted()
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    accepted = load_hypotheses(store, head, Phase.INVESTIGATION)
    texts = {s.id: s.text for s in accepted.interpretation.statements}
    text = hypotheses_text(accepted.document, texts, accepted.interpretation.case)
    assert "Would falsify it: A finding that rules out: stage 3 is not configured." in text
    assert "stands on S1 (observation): “Accepting order 4711 shows the next page" in text


async def test_the_register_section_is_what_later_phases_show() -> None:
    store = await interpreted()
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    section = load_hypotheses(store, head, Phase.INVESTIGATION).section()
    assert (section["max_hypotheses"], section["remaining_slots"]) == (5, 2)
    assert list(section["hypotheses"][0])[:3] == ["id", "position", "role"]
    assert "budget_allocation" not in section["hypotheses"][0]


async def test_the_whole_phase_on_the_real_store_survives_a_new_process(tmp_path: Path) -> None:
    """Nothing is kept outside the package: a second store object over the same folder replays it."""
    store = CheckpointStore(tmp_path)
    new_case(store)  # type: ignore[arg-type]
    await CaseInterpreter(store, ScriptedGateway(fair_model), SEPARATE).build("BUG-1")
    head = (await HypothesisBuilder(store, ScriptedGateway(fair_model)).build("BUG-1")).head
    again = await HypothesisBuilder(CheckpointStore(tmp_path), ScriptedGateway([])).build("BUG-1")
    assert (again.replayed, again.head.record_sha256) == (True, head.record_sha256)
