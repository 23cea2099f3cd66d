"""Which request an attempt sends and what its answer is worth, for both planning modes.

Both are functions of the frozen context and the rejections recorded before the attempt, so that a
replay reaches the same request and the same judgement years later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viano_assets.case.model import CaseDocument
from viano_assets.package.model import Head
from viano_assets.phases.calls import SavedCall
from viano_assets.phases.common import FrozenContext, decode, feedback
from viano_assets.phases.interpretation.context import correction, frozen_request
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.interpretation.rules import validate
from viano_assets.phases.protocols import ModelRequest, Phase, Store
from viano_assets.phases.wire import ValidationIssue


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answer is worth.

    `answer` is the accepted interpretation or None; `issues` say why not; `extra` goes into the
    rejection record; `chain` names the calls the interpretation is made of, base first.
    """

    answer: InterpretationAnswer | None
    issues: tuple[ValidationIssue, ...]
    chain: tuple[SavedCall, ...]
    extra: dict[str, Any] | None = None


def request_for(store: Store, head: Head, context: FrozenContext, before: int | None = None) -> ModelRequest:
    """Return the request of the next attempt, or of the one recorded in generation `before`."""
    issues = feedback(store, head, Phase.INTERPRETATION, before)
    return correction(frozen_request(context.data), issues)


def judge(store: Store, head: Head, context: FrozenContext, case: CaseDocument, call: SavedCall) -> Judgement:
    """Check the answer of `call` against contract and rules."""
    decoded = decode(InterpretationAnswer, call.answer)
    if not isinstance(decoded, InterpretationAnswer):
        return Judgement(None, decoded, (call,))
    issues = validate(decoded, case)
    return Judgement(None if issues else decoded, issues, (call,))
