from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.support.forger import Forger, edited
from tests.support.planning import (
    ALL_RETAINED,
    DONE,
    ERROR,
    JOINT,
    PROPOSED,
    READ,
    adopted,
    case,
    plan,
    propose,
    read,
    repair,
    repaired,
    wrong_fact,
)
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
from viano_assets.case.model import SourceType
from viano_assets.errors import ConfigurationError, ContractError
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.common import read_json
from viano_assets.phases.hypotheses.accepted import load_hypotheses
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig
from viano_assets.phases.protocols import DispatchStatus, Phase


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
    assert gateway.requests[0].limits.max_output_tokens == 2 * 8_192
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


async def test_a_repetition_is_named_at_its_own_position() -> None:
    """Positions that were already out do not shift the place of the ones behind them."""
    store = case()
    answer = plan_answer()
    answer["hypotheses"][0]["source_ids"] = ["S99"]
    answer["hypotheses"][2]["title"] = answer["hypotheses"][1]["title"]
    gateway = ScriptedGateway([answer, hypotheses_answer()])
    await read(store, gateway)
    await propose(store, gateway)
    (shown,) = gateway.requests[1].sections("joint_retained")
    paths = [issue["path"] for issue in shown["issues"] if issue["category"] == "duplicate"]
    assert paths == ["/hypotheses/2/title"]
