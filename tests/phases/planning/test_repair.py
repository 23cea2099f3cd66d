from __future__ import annotations

from typing import Any

import pytest

from tests.support.forger import Forger, edited
from tests.support.planning import (
    ALL_RETAINED,
    DONE,
    ERROR,
    GOOD_FACT,
    PROPOSED,
    READ,
    case,
    plan,
    propose,
    read,
    repair,
    repaired,
    wrong_fact,
)
from tests.support.reading import (
    interpretation_answer,
    new_case,
    plan_answer,
    planned,
    review,
)
from tests.support.schema_check import violations
from tests.support.scripted_gateway import Halted, ScriptedGateway, Unusable
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.errors import ContractError
from viano_assets.package.model import Change, Head
from viano_assets.phases.common import invalid_attempts, read_json
from viano_assets.phases.interpretation.accepted import load_interpretation
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig
from viano_assets.phases.planning.compression import expand
from viano_assets.phases.protocols import CallOutcome, DispatchStatus, Operation, Phase, Store


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
        async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
            await super().dispatch(store, operation, head)
            raise KeyboardInterrupt

    store = case()
    await read(store, ScriptedGateway([plan(wrong_fact)]))
    with pytest.raises(KeyboardInterrupt):
        await read(store, Dying([repair(*ALL_RETAINED)]), 2)
    assert (await read(store, ScriptedGateway([]), 2)).status is DONE


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


async def test_a_call_of_another_attempt_is_refused_even_when_it_is_bound() -> None:
    """Call and bindings are forged together, so that only the identity of the attempt is wrong."""
    store = Forger()
    new_case(store)
    head = await repaired(store)
    paths = [p for p in sorted(head.files) if p.startswith(READ)]
    calls = [p for p in paths if "/calls/" in p]
    call = next(p for p in calls if read_json(store, head, p).get("attempt_id") == "attempt-2")
    forged = edited(store, head, call, b'"attempt_id":"attempt-2"', b'"attempt_id":"attempt-9"')
    store.replace(call, forged)
    old, new = head.files[call].sha256.encode(), sha256_hex(forged).encode()
    for path in paths:
        data = store.read(head, path)
        if path != call and old in data:
            store.replace(path, data.replace(old, new))
    with pytest.raises(ContractError, match="call_mismatch"):
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


async def test_an_unknown_generation_event_does_not_disturb_the_chain() -> None:
    store = case()
    gateway = ScriptedGateway([plan(wrong_fact), repair(*ALL_RETAINED)])
    first = await read(store, gateway)
    store.commit(first.head, Change(event="somebody_else"))
    assert (await read(store, gateway, 2)).status is DONE


async def test_a_chain_names_the_calls_its_last_request_was_made_from() -> None:
    """The first link of a chain of three is forged; the last call was not asked over it."""
    store = Forger()
    new_case(store)
    still = repair(*ALL_RETAINED, value={"text": "x", "source_ids": ["S1"]})
    gateway = ScriptedGateway([plan(wrong_fact), still, repair(*ALL_RETAINED)])
    head = [(await read(store, gateway, number)).head for number in (1, 2, 3)][-1]
    errors = [c for c in head.checkpoints if c.event == "interpretation_answer_rejected"]
    (path,) = errors[-1].declares
    record = read_json(store, head, path)
    assert len(record["repair"]["calls"]) == 2
    record["repair"]["calls"][0]["attempt_id"] = "forged"
    store.replace(path, canonical_json(record))
    with pytest.raises(ContractError, match=r"chain_broken.*before the last"):
        load_interpretation(store, store.latest("BUG-1"), Phase.HYPOTHESES)
