"""The chain of calls behind a joint interpretation: one plan and at most a few statement repairs.

Everything is recomputed from frozen context, rejection records and recorded calls on every read:
source hash, request hash, identity, phase, allowed places and the composition itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viano_assets.case.model import CaseDocument
from viano_assets.errors import ContractError
from viano_assets.package.model import Head
from viano_assets.phases.calls import SavedCall, check_request, read_call
from viano_assets.phases.common import FrozenContext, declared_by, decode, last_rejection, place, request_in
from viano_assets.phases.interpretation.context import correction
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.planning.context import repair_request
from viano_assets.phases.planning.contract import Patches
from viano_assets.phases.planning.places import Place, apply, check_patches, inspect, locate
from viano_assets.phases.planning.reviews import Position, first_positions, fold
from viano_assets.phases.protocols import ModelRequest, Phase, Store
from viano_assets.phases.wire import ValidationIssue

_PHASE = Phase.INTERPRETATION


@dataclass(frozen=True, slots=True)
class Chain:
    """What a sequence of calls has arrived at.

    `raw` is the composed interpretation (not necessarily acceptable), `positions` the candidates with
    what the reviews made of them, None when the plan gave no list of candidates.
    """

    calls: tuple[SavedCall, ...]
    raw: dict[str, Any]
    positions: tuple[Position, ...] | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an attempt asks for: the whole plan (`chain` None) or the repair of `places` of a chain."""

    request: ModelRequest
    chain: Chain | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """What a joint answer is worth; `extra` is kept with a rejection and decides the next attempt."""

    answer: InterpretationAnswer | None
    issues: tuple[ValidationIssue, ...]
    chain: Chain | None
    extra: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reader:
    """Recomputes attempts and chains of one frozen joint context."""

    store: Store
    head: Head
    context: FrozenContext
    case: CaseDocument

    @property
    def version(self) -> int:
        """Version of the joint contract the context was frozen with."""
        return int(self.context.data["joint_generation"]["version"])

    @property
    def _policy(self) -> Mapping[str, Any]:
        policy: Mapping[str, Any] = self.context.data["policy"]
        return policy

    def attempt(self, before: int | None = None) -> Attempt:
        """Return what the next attempt asks for, or the one recorded in generation `before`.

        Raises:
            ContractError: `chain_broken` when a rejection names a chain that does not hold.
        """
        base = request_in(self.context.data)
        record = last_rejection(self.store, self.head, _PHASE, before)
        if record is None:
            return Attempt(base)
        repair = record.get("repair")
        if repair is None:
            return Attempt(correction(base, record["validation_issues"]))
        chain = self.load(repair["calls"], before)
        _, issues = inspect(chain.raw, self.case)
        places = locate(chain.raw, issues, self._policy["max_repair_places"])
        if places is None or [item.path for item in places] != repair["places"]:
            raise self._broken("the places to repair are not those of the answer")
        shown = record["validation_issues"] if repair["again"] else []
        positions = None
        if chain.positions is not None:
            positions = [(position.status.value, position.wire) for position in chain.positions]
        prompt_text = self.context.data["joint_generation"]["repair_prompt"]
        request = repair_request(
            self.case, base, prompt_text, chain.calls[-1], chain.raw, places, positions, shown
        )
        return Attempt(request, chain, places)

    def load(self, bound: Sequence[Mapping[str, Any]], before: int | None = None) -> Chain:
        """Verify and compose the chain that `bound` names, base first.

        Every call must lie in a generation below `before`, so that a chain cannot refer to itself.

        Raises:
            ContractError: `chain_broken`, or what a recorded call no longer satisfies.
        """
        if not 0 < len(bound) <= self._policy.get("max_repairs", 0) + 1:
            raise self._broken("the chain is empty or too deep")
        call = read_call(self.store, self.head, bound[-1], _PHASE)
        recorded = declared_by(self.head, call.binding.path)[0].generation
        if before is not None and recorded >= before:
            raise self._broken("a call refers to itself or to a later one")
        attempt = self.attempt(recorded)
        check_request(self.head, call, attempt.request)
        earlier = () if attempt.chain is None else attempt.chain.calls
        if [item.as_json() for item in earlier] != [dict(item) for item in bound[:-1]]:
            raise self._broken("the calls before the last are not those its request was made from")
        chain, issues = self.extend(attempt, call)
        if chain is None:
            raise self._broken(f"a recorded call cannot be composed: {issues[0].message}")
        return chain

    def extend(self, attempt: Attempt, call: SavedCall) -> tuple[Chain | None, tuple[ValidationIssue, ...]]:
        """Return the chain that `call` leads to, or why its answer cannot be used at all."""
        if attempt.chain is None:
            answer = call.answer
            issues = _shape(answer)
            if issues:
                return None, issues
            return Chain((call,), dict(answer["interpretation"]), first_positions(answer["hypotheses"])), ()
        patches = decode(Patches, {"patches": call.answer.get("patches")})
        foreign = sorted(set(call.answer) - {"patches", "reviews"})
        if foreign:
            return None, tuple(_issue(f"/{name}", "schema", "unknown field") for name in foreign)
        if not isinstance(patches, Patches):
            return None, patches
        refused = check_patches(patches.patches, attempt.places)
        if refused:
            return None, tuple(refused)
        raw = apply(attempt.chain.raw, patches.patches, attempt.places)
        positions = attempt.chain.positions
        if positions is not None:
            positions = fold(positions, call.answer.get("reviews"), attempt.chain.raw, raw)
        return Chain((*attempt.chain.calls, call), raw, positions), ()

    def judge(self, attempt: Attempt, call: SavedCall) -> Judged:
        """Judge the newest answer and say what a next attempt may repair."""
        chain, refused = self.extend(attempt, call)
        if chain is None:
            return Judged(None, refused, None, self._repair_again(attempt))
        answer, issues = inspect(chain.raw, self.case)
        if answer is not None:
            return Judged(answer, (), chain, None)
        prefixed = issues
        if attempt.chain is None:
            prefixed = tuple(
                issue.model_copy(update={"path": f"/interpretation{issue.path}"}) for issue in issues
            )
        return Judged(None, prefixed, chain, self._repair(chain, issues))

    def again(self, attempt: Attempt) -> dict[str, Any] | None:
        """Return what keeps a repair open after a reply that could not be read."""
        return self._repair_again(attempt)

    def _repair_again(self, attempt: Attempt) -> dict[str, Any] | None:
        if attempt.chain is None:
            return None
        return {"repair": _repair_record(attempt.chain, attempt.places, again=True)}

    def _repair(self, chain: Chain, issues: Sequence[ValidationIssue]) -> dict[str, Any] | None:
        if self.version < 2 or len(chain.calls) > self._policy["max_repairs"]:
            return None
        places = locate(chain.raw, issues, self._policy["max_repair_places"])
        if places is None:
            return None
        return {"repair": _repair_record(chain, places, again=False)}

    def _broken(self, why: str) -> ContractError:
        return ContractError(
            "chain_broken",
            f"the chain of repairs cannot be trusted: {why}",
            where=place(self.head),
            hint="run `viano case verify`; restore the package or reopen the case",
        )


def _repair_record(chain: Chain, places: Sequence[Place], *, again: bool) -> dict[str, Any]:
    return {
        "calls": [call.as_json() for call in chain.calls],
        "places": [item.path for item in places],
        "again": again,
    }


def _shape(answer: Mapping[str, Any]) -> tuple[ValidationIssue, ...]:
    """Return why a plan has no interpretation to look at: these faults are global and have no place."""
    issues = [
        _issue(f"/{name}", "schema", "unknown field")
        for name in sorted(answer.keys() - {"interpretation", "hypotheses"})
    ]
    issues += [
        _issue(f"/{name}", "schema", "missing field")
        for name in ("interpretation", "hypotheses")
        if name not in answer
    ]
    if not issues and not isinstance(answer["interpretation"], dict):
        issues.append(_issue("/interpretation", "schema", "not an object"))
    return tuple(issues)


def _issue(path: str, category: str, message: str) -> ValidationIssue:
    return ValidationIssue(
        path=path, category=category, message=message, hint="follow the JSON schema of the request"
    )
