from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.forger import Forger, edited
from tests.support.memory_store import MemoryStore
from tests.support.reading import (
    LINES,
    assemble,
    hypotheses_answer,
    interpretation_answer,
    new_case,
    plan_answer,
    planned,
    review,
)
from tests.support.schema_check import violations
from tests.support.scripted_gateway import Halted, ScriptedGateway, Unusable
from viano_assets.canonical import canonical_json
from viano_assets.case.model import SourceType
from viano_assets.errors import ConfigurationError, ContractError
from viano_assets.package.model import Change
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.common import invalid_attempts, read_json
from viano_assets.phases.hypotheses.accepted import load_hypotheses
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.interpretation.accepted import load_interpretation
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig
from viano_assets.phases.planning.compression import expand
from viano_assets.phases.protocols import CallOutcome, DispatchStatus, Operation, Phase, PhaseResult, Store

DONE = DispatchStatus.COMPLETED
ERROR = DispatchStatus.ERROR
JOINT = InterpretationConfig(planning=PlanningConfig(mode="joint"))
READ = "analysis/interpretation/0001"
PROPOSED = "analysis/hypotheses/0001"


def case(lines: Any = LINES) -> MemoryStore:
    store = MemoryStore()
    new_case(store, lines)
    return store


async def read(store: Any, gateway: ScriptedGateway, attempt: int = 1, **options: Any) -> PhaseResult:
    builder = CaseInterpreter(store, gateway, options.pop("config", JOINT))
    return await builder.build("BUG-1", attempt_id=f"attempt-{attempt}", **options)


async def propose(store: Any, gateway: ScriptedGateway, attempt: int = 1) -> PhaseResult:
    return await HypothesisBuilder(store, gateway).build("BUG-1", attempt_id=f"attempt-{attempt}")


def plan(change: Callable[[dict[str, Any]], None] | None = None, count: int = 3) -> dict[str, Any]:
    answer = plan_answer(count)
    if change is not None:
        change(answer)
    return answer


def wrong_fact(answer: dict[str, Any]) -> None:
    answer["interpretation"]["technical_facts"][0]["source_ids"] = ["S1"]


GOOD_FACT = {"text": "OrderWriter reports no stage 3.", "source_ids": ["S4"]}


def repair(*reviews: Any, value: Any = GOOD_FACT, path: str = "/technical_facts/0") -> dict[str, Any]:
    return {"patches": [{"path": path, "value": value}], "reviews": list(reviews)}


ALL_RETAINED = (review(1), review(2), review(3))


async def test_one_call_serves_both_phases() -> None:
    store = case()
    gateway = ScriptedGateway([plan_answer()])
    result = await read(store, gateway)
    assert result.status is DONE
    done = await propose(store, gateway)
    assert (done.status, gateway.asked) == (DONE, 1)
    assert gateway.requests[0].contract == "case_plan_v2"
    calls = [p for p in done.head.files if "/calls/" in p]
    assert len(calls) == 1
    document = read_json(store, done.head, f"{PROPOSED}/hypotheses.json")
    assert document["calls"] == read_json(store, done.head, f"{READ}/interpretation.json")["calls"]
    assert document["hypotheses"][0]["interpretation_ids"] == ["I9"]
    assert "premises" not in document["hypotheses"][0]
    assert set(document["hypotheses"][0]) >= set(hypotheses_answer()["candidates"][0])
    assert (await propose(store, ScriptedGateway([]))).replayed
    assert (await read(store, ScriptedGateway([]))).replayed


async def test_the_context_names_the_version_and_the_policy_is_pinned_before_the_call() -> None:
    store = case()

    def look(request: Any) -> dict[str, Any]:
        head = store.latest("BUG-1")
        context = read_json(store, head, f"{READ}/context.json")
        assert context["joint_generation"]["version"] == 2
        assert context["policy"]["planning_mode"] == "joint"
        assert read_json(store, head, f"{PROPOSED}/policy.json")["max_hypotheses"] == 4
        assert head.pointer("hypothesis_policy") == f"{PROPOSED}/policy.json"
        assert request.sections("policy")[0]["max_hypotheses"] == 4
        return plan_answer()

    config = JOINT.model_copy(update={"hypotheses": HypothesisConfig(max_hypotheses=4)})
    assert (await read(store, ScriptedGateway(look), config=config)).status is DONE
    with pytest.raises(ConfigurationError, match=r"policy_changed.*max_hypotheses"):
        await HypothesisBuilder(store, ScriptedGateway([]), HypothesisConfig()).build("BUG-1")
    assert (await propose(store, ScriptedGateway([]))).status is DONE


async def test_a_fair_plan_fits_the_schema_that_is_sent() -> None:
    store = case()
    gateway = ScriptedGateway([plan_answer()])
    await read(store, gateway)
    schema = gateway.requests[0].json_schema
    assert violations(schema, plan_answer()) == []
    assert violations(schema, plan(wrong_fact)) == ["/interpretation/technical_facts/0/source_ids/0"]
    assert violations(schema, plan(lambda a: a["hypotheses"][0].pop("premises")))


async def test_assumptions_need_typed_assumption_sources_in_the_joint_schema_too() -> None:
    lines = [line for line in LINES if line[1] is not SourceType.TESTER_ASSUMPTION]
    store = case(lines)
    gateway = ScriptedGateway([Unusable()])
    await read(store, gateway)
    reading = gateway.requests[0].json_schema["properties"]["interpretation"]["properties"]
    assert reading["tester_assumptions"]["maxItems"] == 0


async def test_a_local_fault_is_repaired_locally() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), repair(*ALL_RETAINED)])
    first = await read(store, gateway)
    assert (first.status, first.code) == (ERROR, "invalid_answer")
    record = read_json(store, first.head, next(iter(first.head.checkpoints[-1].declares)))
    assert record["repair"]["places"] == ["/technical_facts/0"]
    issue = record["validation_issues"][0]
    assert (issue["path"], issue["category"]) == (
        "/interpretation/technical_facts/0/source_ids/0",
        "source_class",
    )
    assert "S4" in issue["hint"]
    second = await read(store, gateway, 2)
    assert second.status is DONE
    request = gateway.requests[1]
    assert request.contract == "case_plan_statement_repair_v2"
    document = read_json(store, second.head, f"{READ}/interpretation.json")
    assert document["interpretation"] == interpretation_answer()
    assert [call["attempt_id"] for call in document["calls"]] == ["attempt-1", "attempt-2"]
    done = await propose(store, gateway)
    assert (done.status, gateway.asked) == (DONE, 2)
    context = read_json(store, done.head, f"{PROPOSED}/context.json")
    assert context["joint_adopted"] is True


async def test_the_repair_request_carries_only_what_the_correction_needs() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), repair(*ALL_RETAINED)])
    await read(store, gateway)
    await read(store, gateway, 2)
    request = gateway.requests[1]
    assert request.sections("case") == []
    (binding,) = request.sections("binding")
    (compressed,) = request.sections("repair")
    data = expand(compressed)
    head = store.latest("BUG-1")
    call = binding["source_call"]
    assert head.files[call["path"]].sha256 == call["sha256"]
    assert call["sha256"] not in canonical_json(compressed).decode()
    assert [place["path"] for place in data["places"]] == ["/technical_facts/0"]
    assert data["places"][0]["current"]["source_ids"] == ["S1"]
    assert data["places"][0]["allowed_source_ids"] == ["S4", "S5"]
    assert [source["id"] for source in data["sources"]] == ["S4", "S5"]
    assert [h["proposal"] for h in data["hypotheses"]] == [planned(n) for n in range(3)]
    assert data["hypotheses"][0]["declared"] == [
        {
            "path": "/first_known_divergence",
            "statement": interpretation_answer()["first_known_divergence"],
        }
    ]
    assert violations(request.json_schema, repair(*ALL_RETAINED)) == []
    assert violations(request.json_schema, repair(*ALL_RETAINED, path="/summary"))
    assert violations(request.json_schema, repair(review(1), review(2)))


@pytest.mark.parametrize(
    "patches",
    [
        [],
        [{"path": "/summary", "value": "mine"}],
        [{"path": "/technical_facts/0", "value": GOOD_FACT}, {"path": "/summary", "value": "mine"}],
        [{"path": "/technical_facts/0", "value": GOOD_FACT}] * 2,
        [{"path": "/technical_facts/0"}],
        "none",
        None,
    ],
    ids=str,
)
async def test_a_wrong_patch_set_is_refused_and_the_repair_stays_open(patches: Any) -> None:
    """Other places cannot be overwritten; the base answer and its valid parts are not lost."""
    store = case()
    bad = {"patches": patches, "reviews": list(ALL_RETAINED)}
    gateway = ScriptedGateway([plan(wrong_fact), bad, repair(*ALL_RETAINED)])
    await read(store, gateway)
    refused = await read(store, gateway, 2)
    assert refused.status is ERROR
    assert refused.head.pointer("interpretation") is None
    done = await read(store, gateway, 3)
    assert done.status is DONE
    assert gateway.requests[2].contract == "case_plan_statement_repair_v2"
    (issues,) = gateway.requests[2].sections("validation_issues")
    assert issues[0]["path"].startswith("/patches")
    document = read_json(store, done.head, f"{READ}/interpretation.json")
    assert [call["attempt_id"] for call in document["calls"]] == ["attempt-1", "attempt-3"]
    assert (await propose(store, gateway)).status is DONE
    assert (await read(store, ScriptedGateway([]))).replayed


async def test_an_unknown_field_beside_patches_and_reviews_is_refused() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), {**repair(*ALL_RETAINED), "summary": "mine"}])
    await read(store, gateway)
    assert (await read(store, gateway, 2)).status is ERROR


async def test_an_unreadable_repair_reply_keeps_the_repair_open() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), Unusable(), repair(*ALL_RETAINED)])
    await read(store, gateway)
    await read(store, gateway, 2)
    assert (await read(store, gateway, 3)).status is DONE
    assert gateway.requests[2].contract == "case_plan_statement_repair_v2"


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(notes="x"),
        lambda a: a.pop("hypotheses"),
        lambda a: a.pop("interpretation"),
        lambda a: a.update(interpretation="text"),
        lambda a: a["interpretation"].update(verdict="confirmed"),
        lambda a: a["interpretation"].update(observed_behavior=[{"text": "x", "source_ids": ["S4"]}] * 13),
    ],
    ids=["unknown", "no list", "no reading", "text", "unknown in reading", "too many"],
)
async def test_without_a_safe_place_the_whole_plan_is_asked_for_again(change: Any) -> None:
    store = case()
    gateway = ScriptedGateway([plan(change), plan_answer()])
    first = await read(store, gateway)
    assert first.status is ERROR
    record = read_json(store, first.head, next(iter(first.head.checkpoints[-1].declares)))
    assert "repair" not in record
    assert (await read(store, gateway, 2)).status is DONE
    assert gateway.requests[1].contract == "case_plan_v2"
    assert gateway.requests[1].sections("validation_issues")
    assert (await propose(store, gateway)).status is DONE
    assert gateway.asked == 2


async def test_a_valid_patch_beside_a_still_wrong_one_is_kept() -> None:
    """The second repair asks for the remaining place only."""

    def two(answer: dict[str, Any]) -> None:
        wrong_fact(answer)
        answer["interpretation"]["entities"][1]["value"] = "OrderReader"

    half = {
        "patches": [
            {"path": "/technical_facts/0", "value": GOOD_FACT},
            {
                "path": "/entities/1",
                "value": {"kind": "class", "value": "Writer2", "label": "w", "source_ids": ["S4"]},
            },
        ],
        "reviews": list(ALL_RETAINED),
    }
    store = case()
    gateway = ScriptedGateway([plan(two), half, repair(*ALL_RETAINED, path="/entities/1", value=None)])
    for number in (1, 2):
        assert (await read(store, gateway, number)).status is ERROR
    result = await read(store, gateway, 3)
    assert result.status is DONE
    assert [p["path"] for p in expand(gateway.requests[2].sections("repair")[0])["places"]] == ["/entities/1"]
    document = read_json(store, result.head, f"{READ}/interpretation.json")
    assert len(document["calls"]) == 3
    assert document["interpretation"]["technical_facts"][0] == GOOD_FACT
    assert len(document["interpretation"]["entities"]) == 1
    assert (await propose(store, gateway)).status is DONE
    assert gateway.asked == 3


async def test_the_chain_is_bounded_and_then_the_whole_is_asked_for() -> None:
    still = repair(*ALL_RETAINED, value={"text": "x", "source_ids": ["S1"]})
    store = case()
    config = InterpretationConfig(
        planning=PlanningConfig(mode="joint", max_repairs=2), max_invalid_responses=6
    )
    gateway = ScriptedGateway([plan(wrong_fact), still, still, plan_answer()])
    results = [await read(store, gateway, number, config=config) for number in range(1, 5)]
    contracts = [request.contract[:14] for request in gateway.requests]
    assert contracts == ["case_plan_v2", "case_plan_stat", "case_plan_stat", "case_plan_v2"]
    assert [result.status for result in results] == [ERROR, ERROR, ERROR, DONE]
    result = results[-1]
    document = read_json(store, result.head, f"{READ}/interpretation.json")
    assert [call["attempt_id"] for call in document["calls"]] == ["attempt-4"]
    assert (await read(store, ScriptedGateway([]))).replayed


async def test_repairs_count_against_the_invalid_answers_of_the_revision() -> None:
    store = case()
    still = repair(*ALL_RETAINED, value={"text": "x", "source_ids": ["S1"]})
    gateway = ScriptedGateway([plan(wrong_fact), still, still])
    for number in range(1, 4):
        await read(store, gateway, number)
    result = await read(store, gateway, 4)
    assert (result.status, result.code) == (DispatchStatus.BLOCKED, "invalid_answers_exhausted")
    assert (gateway.asked, invalid_attempts(result.head, Phase.INTERPRETATION)) == (3, 3)


async def test_transport_retries_stay_apart_from_corrections() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), Halted("retry_pending"), repair(*ALL_RETAINED)])
    await read(store, gateway)
    assert (await read(store, gateway, 2)).status is DispatchStatus.RETRY_PENDING
    assert (await read(store, gateway, 2)).status is DONE
    assert invalid_attempts(store.latest("BUG-1"), Phase.INTERPRETATION) == 1


async def test_a_saved_repair_is_reused_after_an_interruption() -> None:
    class Dying(ScriptedGateway):
        async def dispatch(self, store: Store, operation: Operation) -> CallOutcome:
            await super().dispatch(store, operation)
            raise KeyboardInterrupt

    store = case()
    await read(store, ScriptedGateway([plan(wrong_fact)]))
    with pytest.raises(KeyboardInterrupt):
        await read(store, Dying([repair(*ALL_RETAINED)]), 2)
    assert (await read(store, ScriptedGateway([]), 2)).status is DONE


async def adopted(
    reviews: Any, value: Any = GOOD_FACT, change: Any = wrong_fact, path: str = "/technical_facts/0"
) -> tuple[MemoryStore, ScriptedGateway]:
    store = case()
    answer: dict[str, Any] = {"patches": [{"path": path, "value": value}], "reviews": reviews}
    gateway = ScriptedGateway([plan(change), answer])
    await read(store, gateway)
    result = await read(store, gateway, 2)
    assert result.status is DONE
    return store, gateway


@pytest.mark.parametrize(
    "reviews",
    [None, "fine", [], [{"position": 1}], {"1": "retain"}],
    ids=["null", "text", "empty", "cut", "map"],
)
async def test_a_missing_or_malformed_review_block_discards_no_valid_patch(reviews: Any) -> None:
    """The interpretation is accepted; no independence is assumed, so every position is asked for anew."""
    store, _ = await adopted(reviews)
    gateway = ScriptedGateway([hypotheses_answer(4)])
    done = await propose(store, gateway)
    assert (done.status, gateway.asked) == (DONE, 1)
    context = read_json(store, done.head, f"{PROPOSED}/context.json")
    assert (context["joint_positions"], context["joint_retained"]) == (None, [])
    assert len(read_json(store, done.head, f"{PROPOSED}/hypotheses.json")["hypotheses"]) == 4
    (shown,) = gateway.requests[0].sections("joint_retained")
    assert shown["positions"] is None
    assert {issue["category"] for issue in shown["issues"]} == {"review_unclear"}


async def test_a_missing_review_key_discards_no_valid_patch() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), {"patches": repair()["patches"]}])
    await read(store, gateway)
    assert (await read(store, gateway, 2)).status is DONE


async def test_an_explicit_replacement_is_taken_over() -> None:
    replacement = planned(4)
    store, gateway = await adopted([review(1), review(2, "replace", replacement), review(3)])
    done = await propose(store, gateway)
    assert (done.status, gateway.asked) == (DONE, 2)
    document = read_json(store, done.head, f"{PROPOSED}/hypotheses.json")
    assert [h["title"] for h in document["hypotheses"]] == [
        planned(0)["title"],
        replacement["title"],
        planned(2)["title"],
    ]


async def test_an_unclear_candidate_leaves_the_interpretation_accepted_and_the_others_locked() -> None:
    store, _ = await adopted([review(1), review(2, "uncertain"), review(3)])
    assert store.latest("BUG-1").pointer("interpretation") is not None

    moved = hypotheses_answer()
    moved["candidates"][0]["rationale"] = "Rewritten."
    shorter = hypotheses_answer(4)
    good = hypotheses_answer()
    good["candidates"][1] = {**hypotheses_answer(6)["candidates"][5], "interpretation_ids": ["I2"]}
    gateway = ScriptedGateway([moved, shorter, good])
    for number, category in ((1, "retained_changed"), (2, "retained_changed")):
        result = await propose(store, gateway, number)
        assert result.status is ERROR
        record = read_json(store, result.head, next(iter(result.head.checkpoints[-1].declares)))
        assert [issue["category"] for issue in record["validation_issues"]] == [category]
    assert store.latest("BUG-1").pointer("hypothesis_registry") is None
    done = await propose(store, gateway, 3)
    assert done.status is DONE
    context = read_json(store, done.head, f"{PROPOSED}/context.json")
    assert context["joint_positions"] == 3
    assert [item["position"] for item in context["joint_retained"]] == [1, 3]
    array = gateway.requests[0].json_schema["properties"]["candidates"]
    assert (array["minItems"], array["maxItems"]) == (3, 3)
    assert array["prefixItems"][0] == {"const": context["joint_retained"][0]["candidate"]}
    assert "const" not in array["prefixItems"][1]
    assert violations(gateway.requests[0].json_schema, good) == []
    assert violations(gateway.requests[0].json_schema, moved) == ["/candidates/0"]
    assert violations(gateway.requests[0].json_schema, shorter) == ["/candidates"]
    assert (await propose(store, ScriptedGateway([]))).replayed


async def test_retained_objects_with_changed_grounds_are_asked_for_again() -> None:
    """`retain` is claimed, but the statement the candidate declares was corrected."""

    def wrong(answer: dict[str, Any]) -> None:
        answer["interpretation"]["observed_behavior"][0]["source_ids"] = ["S4"]

    fixed = {"text": "The table stays empty.", "source_ids": ["S1"]}
    store, _ = await adopted(list(ALL_RETAINED), fixed, wrong, "/observed_behavior/0")
    answer = hypotheses_answer()
    answer["candidates"][0] = {**hypotheses_answer()["candidates"][0]}
    gateway = ScriptedGateway([answer])
    done = await propose(store, gateway)
    assert done.status is DONE
    context = read_json(store, done.head, f"{PROPOSED}/context.json")
    assert [item["position"] for item in context["joint_retained"]] == [1]


async def test_a_deletion_that_moves_other_statements_up_unlocks_those_who_cite_them() -> None:
    def wrong(answer: dict[str, Any]) -> None:
        answer["interpretation"]["observed_behavior"][0]["source_ids"] = ["S4"]

    store, _ = await adopted(list(ALL_RETAINED), None, wrong, "/observed_behavior/0")
    head = store.latest("BUG-1")
    document = read_json(store, head, f"{READ}/interpretation.json")
    assert document["statements"][0]["text"] == "It happens for every order."
    assert document["first_known_divergence"] == "I8"
    gateway = ScriptedGateway([Unusable()])
    await propose(store, gateway)
    context = read_json(store, store.latest("BUG-1"), f"{PROPOSED}/context.json")
    assert [item["position"] for item in context["joint_retained"]] == [1]
    assert context["joint_retained"][0]["candidate"]["interpretation_ids"] == ["I8"]


@pytest.mark.parametrize(
    ("change", "category"),
    [
        (lambda h: h[1].update(source_ids=["S99"]), "source_unknown"),
        (lambda h: h[1].update(interpretation_paths=["/summary"]), "path_unknown"),
        (lambda h: h[1]["premises"][0].update(source_ids=["S9"]), "premise_undeclared"),
        (lambda h: h[1].update(title=h[0]["title"]), "duplicate"),
        (lambda h: h[0].update(source_ids=["S4"]), "first_candidate_source"),
        (lambda h: h[1].update(source_ids=["S6"], interpretation_paths=[]), "ungrounded"),
        (lambda h: h.pop(), "count"),
        (lambda h: h.extend(planned(n) for n in (3, 4, 5)), "count"),
        (lambda h: h[1].pop("premises"), "schema"),
        (lambda h: h.__setitem__(1, "a text"), "schema"),
        (lambda h: h[1].update(confidence=0.9), "schema"),
    ],
)
async def test_bad_candidates_never_cost_a_valid_interpretation(change: Any, category: str) -> None:
    """They were not reviewed, so none of them is retained and the whole list is asked for."""
    store = case()
    answer = plan_answer()
    change(answer["hypotheses"])
    gateway = ScriptedGateway([answer, hypotheses_answer()])
    assert (await read(store, gateway)).status is DONE
    done = await propose(store, gateway)
    assert (done.status, gateway.requests[1].contract) == (DONE, "hypotheses-output-v1")
    (shown,) = gateway.requests[1].sections("joint_retained")
    assert category in {issue["category"] for issue in shown["issues"]}
    assert (shown["positions"], shown["retained"]) == (None, [])
    assert (await propose(store, ScriptedGateway([]))).replayed


@pytest.mark.parametrize("value", [None, "none", {}, {"candidates": []}])
async def test_a_malformed_candidate_list_never_costs_a_valid_interpretation(value: Any) -> None:
    store = case()
    gateway = ScriptedGateway([{**plan_answer(), "hypotheses": value}, hypotheses_answer()])
    assert (await read(store, gateway)).status is DONE
    assert (await propose(store, gateway)).status is DONE


@pytest.mark.parametrize(
    "replacement",
    [
        {**planned(4), "source_ids": ["S6"], "interpretation_paths": []},
        {**planned(4), "interpretation_paths": ["/technical_facts/9"]},
        {**planned(4), "title": planned(0)["title"]},
    ],
)
async def test_a_replacement_passes_every_gate_again(replacement: dict[str, Any]) -> None:
    replacement = copy.deepcopy(replacement)
    replacement["premises"] = [
        {"kind": "unverified", "text": "x", "source_ids": [], "interpretation_paths": []}
    ]
    store, _ = await adopted([review(1), review(2, "replace", replacement), review(3)])
    gateway = ScriptedGateway([Unusable()])
    await propose(store, gateway)
    assert gateway.asked == 1
    context = read_json(store, store.latest("BUG-1"), f"{PROPOSED}/context.json")
    assert [item["position"] for item in context["joint_retained"]] == [1, 3]


async def test_a_number_outside_the_policy_is_never_locked() -> None:
    store = case()
    gateway = ScriptedGateway(
        [
            plan(wrong_fact, count=6),
            repair(*(review(n) for n in range(1, 6)), review(6, "uncertain")),
            Unusable(),
        ]
    )
    await read(store, gateway)
    await read(store, gateway, 2)
    await propose(store, gateway)
    context = read_json(store, store.latest("BUG-1"), f"{PROPOSED}/context.json")
    assert (context["joint_positions"], context["joint_retained"]) == (None, [])


async def test_the_whole_registry_appears_only_with_the_whole_result() -> None:
    store, _ = await adopted([review(1), review(2, "uncertain"), review(3)])
    gateway = ScriptedGateway([Halted("retry_pending")])
    await propose(store, gateway)
    head = store.latest("BUG-1")
    assert not [p for p in head.files if p.endswith(("registry.json", "hypotheses.json"))]


async def test_no_observation_blocks_the_joint_mode_too() -> None:
    store = case([line for line in LINES if line[1] is SourceType.TECHNICAL_FACT])
    empty: dict[str, Any] = {
        name: [] for name, value in interpretation_answer().items() if isinstance(value, list)
    }
    reading = {**interpretation_answer(), **empty, "failure_stage": None, "first_known_divergence": None}
    gateway = ScriptedGateway([{"interpretation": reading, "hypotheses": []}])
    assert (await read(store, gateway)).status is DONE
    result = await propose(store, gateway)
    assert (result.status, result.code, gateway.asked) == (DispatchStatus.BLOCKED, "observation_missing", 1)


async def repaired(store: Any) -> Any:
    gateway = ScriptedGateway([plan(wrong_fact), repair(*ALL_RETAINED)])
    await read(store, gateway)
    await read(store, gateway, 2)
    return (await propose(store, gateway)).head


@pytest.mark.parametrize(
    ("pick", "old", "new", "code"),
    [
        ("attempt-1", b"unwritten", b"unwr1tten", "binding_broken"),
        ("attempt-2", b"independent", b"indep3ndent", "binding_broken"),
        ("errors", b'"/technical_facts/0"', b'"/technical_facts/1"', "chain_broken"),
        ("errors", b'"again":false', b'"again":true ', "request_mismatch"),
        ("interpretation.json", b"attempt-1", b"attempt-2", "interpretation_broken|call_mismatch"),
        ("context.json", b"Removed list entries", b"Forged list entries ", "context_unbound"),
    ],
)
async def test_the_chain_is_verified_on_every_read(pick: str, old: bytes, new: bytes, code: str) -> None:
    """Source hash, request hash, identity, allowed places and composition are recomputed each time."""
    store = Forger()
    new_case(store)
    head = await repaired(store)
    paths = [p for p in sorted(head.files) if p.startswith(READ)]
    if pick.startswith("attempt"):
        calls = [p for p in paths if "/calls/" in p]
        path = next(p for p in calls if read_json(store, head, p)["attempt_id"] == pick)
    else:
        path = next(p for p in paths if pick in p)
    store.replace(path, edited(store, head, path, old, new))
    with pytest.raises(ContractError, match=code):
        load_interpretation(store, store.latest("BUG-1"), Phase.HYPOTHESES)


async def test_a_chain_that_refers_to_itself_is_refused() -> None:
    store = Forger()
    new_case(store)
    head = await repaired(store)
    (error,) = [p for p in head.files if p.startswith(f"{READ}/errors/")]
    record = read_json(store, head, error)
    last = read_json(store, head, f"{READ}/interpretation.json")["calls"][-1]
    record["repair"]["calls"] = [last]
    store.replace(error, canonical_json(record))
    with pytest.raises(ContractError, match=r"chain_broken.*itself"):
        load_interpretation(store, store.latest("BUG-1"), Phase.HYPOTHESES)


@pytest.mark.parametrize("length", [0, 4])
async def test_an_empty_or_too_deep_chain_is_refused(length: int) -> None:
    store = Forger()
    new_case(store)
    head = await repaired(store)
    (error,) = [p for p in head.files if p.startswith(f"{READ}/errors/")]
    record = read_json(store, head, error)
    record["repair"]["calls"] = record["repair"]["calls"] * length
    store.replace(error, canonical_json(record))
    with pytest.raises(ContractError, match=r"chain_broken.*too deep"):
        load_interpretation(store, store.latest("BUG-1"), Phase.HYPOTHESES)


async def test_a_forged_retained_candidate_is_found() -> None:
    store = Forger()
    new_case(store)
    gateway = ScriptedGateway(
        [plan(wrong_fact), repair(review(1), review(2, "uncertain"), review(3)), hypotheses_answer()]
    )
    await read(store, gateway)
    await read(store, gateway, 2)
    head = (await propose(store, gateway)).head
    path = f"{PROPOSED}/context.json"
    data = edited(store, head, path, b'"joint_positions":3', b'"joint_positions":4')
    store.replace(path, data)
    with pytest.raises(ContractError, match="context_unbound"):
        load_hypotheses(store, store.latest("BUG-1"), Phase.INVESTIGATION)


async def test_a_new_revision_may_plan_in_another_mode() -> None:
    store = case()
    gateway = ScriptedGateway([plan_answer()])
    await read(store, gateway)
    head = (await propose(store, gateway)).head
    assemble(store, head, revision=2)
    separate = InterpretationConfig(planning=PlanningConfig(mode="separate"))
    gateway = ScriptedGateway([interpretation_answer(), hypotheses_answer()])
    assert (await read(store, gateway, config=separate)).status is DONE
    assert (await propose(store, gateway)).status is DONE
    assert gateway.requests[1].sections("prior_proposals")[0][0]["analysis_revision"] == 1


async def test_joint_prior_proposals_are_shown_in_the_plan() -> None:
    store = case()
    gateway = ScriptedGateway([plan_answer()])
    await read(store, gateway)
    head = (await propose(store, gateway)).head
    assemble(store, head, revision=2)
    gateway = ScriptedGateway([plan_answer()])
    await read(store, gateway)
    assert gateway.requests[0].sections("prior_proposals")[0][0]["proposals"][0]["id"] == "H1"


async def test_calls_are_real_and_nothing_is_booked_twice() -> None:
    store = case()
    head = await repaired(store)
    calls = [p for p in head.files if "/calls/" in p]
    assert len(calls) == 2
    gateway = ScriptedGateway([])
    assert gateway.spend(store, head).tokens_in == 200


async def test_the_whole_joint_phase_on_the_real_store_survives_a_new_process(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    new_case(store)  # type: ignore[arg-type]
    head = await repaired(store)
    again = await propose(CheckpointStore(tmp_path), ScriptedGateway([]))
    assert (again.replayed, again.head.record_sha256) == (True, head.record_sha256)


async def test_an_unknown_generation_event_does_not_disturb_the_chain() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), repair(*ALL_RETAINED)])
    first = await read(store, gateway)
    store.commit(first.head, Change(event="somebody_else"))
    assert (await read(store, gateway, 2)).status is DONE
