"""The pattern of the trial behind seed 004: a "missing" thing is found again and again.

The model keeps finding the hook, row or setting that its first hypothesis says is missing, and yet asks
for `strongly_supported`. What it declares decides: the table caps it, whatever it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.investigating import whole_loop
from tests.support.turn_answers import action, answer, shown_ids, turn_of
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.investigation.record import InvestigationRecord
from viano_assets.phases.investigation.summary import render
from viano_assets.phases.investigation.telling import decided
from viano_assets.phases.markdown import escape
from viano_assets.phases.protocols import ModelRequest

FOUND: dict[str, list[dict[str, Any]]] = {
    "code": [
        action("source.search", pattern="register_hook"),
        action("source.read", countercheck_of="H2", path="dock.cpp", line_start=1, line_end=3),
        action("source.search", pattern="HOOK_ACCEPT(id)"),
        action("source.search", pattern="on_accept"),
    ],
    "data": [
        action("db.rows", table="stage", column="stage", value="1"),
        action("db.rows", countercheck_of="H2", table="stage", column="step", value="move"),
        action("db.rows", table="stage", column="contract", value="41"),
        action("db.rows", table="stage", column="contract", value="42"),
    ],
    "configuration": [
        action("log.search", pattern="max_stage"),
        action("log.search", countercheck_of="H2", pattern="stage 2"),
        action("log.search", pattern="accept hook"),
        action("log.search", pattern="contract 41"),
    ],
}
TITLES = ("The hook is missing", "The last step has no row", "Another one")
EQUAL_COSTS = InvestigationConfig(tool_costs=dict.fromkeys(("db.rows", "source.read", "source.search"), 3))
ALTERNATIVE = action("source.search", countercheck_of="H1", pattern="limit")


class Obstinate:
    """Declares `effect` for H1 and asks for the highest level; judges the alternative honestly."""

    def __init__(self, variant: str, effect: str) -> None:
        self.looks = list(FOUND[variant])
        self.effect = effect

    def __call__(self, request: ModelRequest) -> Mapping[str, Any]:
        turn = turn_of(request)
        seen = shown_ids(request)
        if turn["selected_hypothesis"] == "H1":
            return self._missing(turn, seen)
        if turn["selected_hypothesis"] == "H3":
            looks = [action("log.search", pattern="nothing of the kind")] if turn["first_turn"] else []
            return answer(turn, actions=looks, finish=not looks)
        if turn["first_turn"]:
            return answer(turn, actions=[ALTERNATIVE])
        return answer(
            turn, effect="supports", support=seen[1:2], requested="strongly_supported", finish=True, score=80
        )

    def _missing(self, turn: dict[str, Any], seen: list[str]) -> Mapping[str, Any]:
        if turn["first_turn"]:
            return answer(turn, actions=[self.looks.pop(0)])
        sides: dict[str, Any] = {
            "contradicts": {"against": seen[:1]},
            "mixed": {"support": seen[:1], "against": seen[:1]},
            "neutral": {"refs": seen[:1]},
            "supports": {"support": seen[:1]},
        }[self.effect]
        done = len(self.looks) < 3
        return answer(
            turn,
            effect=self.effect,
            requested="strongly_supported",
            actions=[] if done else [self.looks.pop(0)],
            finish=done,
            score=90,
            **sides,
        )


def investigate(variant: str, effect: str) -> InvestigationRecord:
    return whole_loop(Obstinate(variant, effect), EQUAL_COSTS, titles=TITLES)


@pytest.mark.parametrize("variant", sorted(FOUND))
@pytest.mark.parametrize(
    ("effect", "level"), [("contradicts", "weakened"), ("mixed", "plausible"), ("neutral", "plausible")]
)
def test_what_it_declares_caps_what_it_asks_for_and_the_alternative_wins(
    variant: str, effect: str, level: str
) -> None:
    record = investigate(variant, effect)
    missing, alternative, _ = record.document.hypotheses
    assert missing.requested_confidence.value == "strongly_supported"
    assert missing.effective_confidence.value == level
    told = [decided(decision, 7) for decision in record.loop.decisions if decision.selected == "H1"]
    assert any(f"H1 {level} (strongly supported was asked for), 7 units left" in line for line in told)
    note = f"requested strongly_supported, effective {level}: the declared effect is {effect}"
    assert note in missing.notes
    assert escape(note) in render(record.document, record.evidence)
    assert (alternative.terminal_reason, alternative.effective_confidence.value) == (
        "finished",
        "strongly_supported",
    )
    assert record.document.reason == "confident"
    assert missing.balance > 0


@pytest.mark.parametrize("variant", sorted(FOUND))
def test_a_contradicted_hypothesis_loses_its_turn_at_once_and_keeps_its_balance(variant: str) -> None:
    record = investigate(variant, "contradicts")
    order = [context.selected for context in record.loop.contexts]
    judged = order.index("H1", 3)
    assert "H1" not in order[judged + 1 :]
    assert order[judged + 1] in {"H2", "H3"}
    missing = record.document.hypotheses[0]
    assert missing.terminal_reason == "loop_finished"
    assert missing.balance == record.budget.accounts["H1"].balance > 80


@pytest.mark.parametrize("variant", sorted(FOUND))
def test_useful_counterevidence_is_rewarded_like_any_other(variant: str) -> None:
    record = investigate(variant, "contradicts")
    assert record.document.actions[0].reward > 0


@pytest.mark.parametrize("variant", sorted(FOUND))
def test_a_wrong_declaration_of_support_keeps_its_request(variant: str) -> None:
    """The controller judges no meaning; the corpus shows what such a declaration is worth."""
    record = investigate(variant, "supports")
    missing = record.document.hypotheses[0]
    assert missing.effective_confidence.value == "strongly_supported"
    assert missing.terminal_reason == "finished"
    assert missing.notes == ()
    assert record.document.reason == "confident"
    assert missing.last_review is not None
    assert missing.last_review.support
