"""Random cases, valid and near-valid answers, and whole phases played with them.

Seeded, so that a failing number can be played again: `play(number, valid=…)`.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.deep._planning_oracle import GROUNDS, SEEN, published_faults
from tests.support.memory_store import MemoryStore
from tests.support.reading import new_case
from tests.support.scripted_gateway import Reply, ScriptedGateway, Unusable
from viano_assets.case.model import SourceType
from viano_assets.errors import VianoError
from viano_assets.phases.common import read_json
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig, PlanningConfig, PlanningMode
from viano_assets.phases.planning.compression import expand
from viano_assets.phases.protocols import DispatchStatus, ModelRequest

WORDS = [
    "order",
    "stage",
    "writer",
    "table",
    "index",
    "queue",
    "anchor",
    "window",
    "crane",
    "pallet",
    "invoice",
    "ledger",
    "größe",
    "ﬁle",
    "新しい",
    "schema",
    "token",
    "batch",
    "socket",
    "thread",
    "cache",
    "lease",
    "rotor",
    "valve",
]
TYPES = list(SourceType)
LISTS = (
    "observed_behavior",
    "expected_behavior",
    "reproduction_steps",
    "technical_facts",
    "tester_assumptions",
)
SINGLES = ("failure_stage", "first_known_divergence")


class Author:
    """A model that knows the rules and keeps them, or breaks them a little."""

    def __init__(self, seed: int, *, valid: bool) -> None:
        self.rng = random.Random(seed)
        self.valid = valid
        self.joint = self.rng.random() < 0.6
        kinds = self.rng.choices(TYPES, k=self.rng.randint(2, 11))
        if valid or self.rng.random() < 0.9:
            kinds.append(self.rng.choice((SourceType.OBSERVATION, SourceType.REPORT, SourceType.COMMENT)))
        self.lines = [(self._sentence(), kind) for kind in kinds]
        self.types = {f"S{n}": kind.value for n, kind in enumerate(kinds, start=1)}
        self.texts = {f"S{n}": text for n, (text, _) in enumerate(self.lines, start=1)}

    def _sentence(self) -> str:
        return " ".join(self.rng.sample(WORDS, self.rng.randint(3, 9))) + f" {self.rng.randint(0, 9999)}."

    def _ids(self, allowed: set[str]) -> list[str]:
        ids = [i for i, kind in self.types.items() if kind in allowed]
        return self.rng.sample(ids, min(len(ids), self.rng.randint(1, 2)))

    def _statement(self, category: str) -> dict[str, Any] | None:
        ids = self._ids(GROUNDS[category])
        if not ids:
            return None
        statement: dict[str, Any] = {"text": self._sentence(), "source_ids": ids}
        if category == "expected_behavior":
            statement["expectation_completeness"] = self.rng.choice(("complete", "partial", "unknown"))
        return statement

    def reading(self) -> dict[str, Any]:
        """A valid interpretation of the random case."""
        found: dict[str, Any] = {"summary": self._sentence()}
        for category in LISTS:
            least = 1 if category == "observed_behavior" else 0
            drawn = [self._statement(category) for _ in range(self.rng.randint(least, 3))]
            found[category] = [statement for statement in drawn if statement is not None]
        for category in SINGLES:
            found[category] = self._statement(category) if self.rng.random() < 0.5 else None
        found["entities"] = [self._entity() for _ in range(self.rng.randint(0, 3))]
        found["lookups"] = [self._lookup() for _ in range(self.rng.randint(0, 2))]
        found["missing_information"] = [self._sentence() for _ in range(self.rng.randint(0, 2))]
        found["open_questions"] = [self._sentence() for _ in range(self.rng.randint(0, 2))]
        return found

    def _entity(self) -> dict[str, Any]:
        source = self.rng.choice(sorted(self.texts))
        return {
            "kind": "word",
            "value": self.rng.choice(self.texts[source].split()),
            "label": self._sentence(),
            "source_ids": [source],
        }

    def _cause(self, number: int) -> dict[str, Any]:
        return {
            "title": f"{self._sentence()} cause {number}",
            "mechanism": f"{self._sentence()} mechanism {number}",
            "rationale": self._sentence(),
            "distinction": self._sentence(),
            "expected_evidence": [self._sentence()],
            "falsifying_evidence": [self._sentence() for _ in range(self.rng.randint(1, 2))],
            "open_questions": [self._sentence() for _ in range(self.rng.randint(0, 1))],
        }

    def _references(
        self, number: int, statements: Sequence[tuple[str, str]], strong: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return source ids and statement names; `statements` are (category, name) pairs."""
        if number > 1:
            names = [name for _, name in statements]
            cited = self.rng.sample(names, min(len(names), self.rng.randint(0, 2)))
            sources = [self.rng.choice(list(strong))]
            sources += [i for i in self._ids(set(self.types.values())) if i not in sources]
            return sources, cited
        for category in ("first_known_divergence", "failure_stage", "observed_behavior"):
            focus = [name for kind, name in statements if kind == category]
            if focus:
                return self._ids(SEEN), [self.rng.choice(focus)]
        return self._ids(SEEN), []

    def _strong(self) -> list[str]:
        weak = {"tester_assumption", "external_expectation", "implementation_reference"}
        return [i for i, kind in self.types.items() if kind not in weak]

    def planned(self, number: int, reading: Mapping[str, Any]) -> dict[str, Any]:
        """One valid joint candidate over a reading."""
        statements = [
            (category, f"/{category}/{index}")
            for category in LISTS
            for index in range(len(reading.get(category) or ()))
        ]
        statements += [(category, f"/{category}") for category in SINGLES if reading.get(category)]
        sources, paths = self._references(number, statements, self._strong() or ["S1"])
        read = [i for i in sources if self.types[i] != "implementation_reference"]
        premises: list[dict[str, Any]] = [
            {"kind": "unverified", "text": self._sentence(), "source_ids": [], "interpretation_paths": []}
        ]
        if read or paths:
            grounded = {"source_ids": read[:1], "interpretation_paths": paths[: 0 if read else 1]}
            premises.append({"kind": "grounded", "text": self._sentence(), **grounded})
        return {
            **self._cause(number),
            "source_ids": sources,
            "interpretation_paths": paths,
            "premises": premises,
        }

    def plan(self) -> dict[str, Any]:
        """A valid joint answer."""
        reading = self.reading()
        numbers = range(1, self.rng.randint(3, 5) + 1)
        return {"interpretation": reading, "hypotheses": [self.planned(n, reading) for n in numbers]}

    def candidates(self, request: ModelRequest) -> dict[str, Any]:
        """A valid batch for a request, with retained positions repeated."""
        (shown,) = request.sections("interpretation")
        statements = [(s["category"], s["id"]) for s in shown["statements"]]
        locked: dict[int, Any] = {}
        count = self.rng.randint(3, 5)
        for section in request.sections("joint_retained"):
            locked = {item["position"]: item["candidate"] for item in section["retained"]}
            count = section["positions"] or count
        batch = []
        for number in range(1, count + 1):
            sources, cited = self._references(number, statements, self._strong() or ["S1"])
            made = {**self._cause(number + 10), "source_ids": sources, "interpretation_ids": cited}
            batch.append(locked.get(number, made))
        return {"candidates": batch}

    def repair(self, request: ModelRequest) -> dict[str, Any]:
        """A valid repair of exactly the disputed places, with random honest reviews."""
        data = expand(request.sections("repair")[0])
        patches = [{"path": p["path"], "value": self._patched(p)} for p in data["places"]]
        reviews = []
        for item in data["hypotheses"]:
            decision = self.rng.choice(("retain", "retain", "replace", "uncertain"))
            replacement = None
            if decision == "replace":
                replacement = self.planned(item["position"] + 20, {})
                replacement["interpretation_paths"] = []
                replacement["premises"] = replacement["premises"][:1]
            reviews.append(
                {
                    "position": item["position"],
                    "decision": decision,
                    "reason": self._sentence(),
                    "replacement": replacement,
                }
            )
        return {"patches": patches, "reviews": reviews}

    def _patched(self, place: Mapping[str, Any]) -> Any:
        field, *index = place["path"].strip("/").split("/")
        if not index and field not in {*SINGLES, "summary"}:
            return []
        if index and self.rng.random() < 0.3:
            return None
        if field in GROUNDS:
            return self._statement(field)
        if field == "entities":
            return self._entity()
        return self._lookup() if field == "lookups" else self._sentence()

    def _lookup(self) -> dict[str, Any]:
        entity = self._entity()["value"]
        return {"question": self._sentence(), "entity": entity, "certainty": "uncertain"}

    def bend(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the answer with one to three small faults."""
        bent = copy.deepcopy(answer)
        for _ in range(self.rng.randint(1, 3)):
            self._fault(bent)
        return bent

    def _fault(self, answer: dict[str, Any]) -> None:
        containers = [node for node in _nodes(answer) if node]
        if not containers:
            return
        node = self.rng.choice(containers)
        key: Any = self.rng.randrange(len(node)) if isinstance(node, list) else self.rng.choice(sorted(node))
        kind = self.rng.randrange(8)
        if kind == 0:
            del node[key]
        elif kind == 1:
            node[key] = self.rng.choice((None, 90, 0.9, "", "9/10", True, [], {}))
        elif kind == 2 and isinstance(node, dict):
            node[self.rng.choice(("confidence", "id", "status", "$shared"))] = "high"
        elif kind == 3 and isinstance(node, list):
            node.append(copy.deepcopy(node[key]))
        elif isinstance(node[key], str):
            ids = [*self.types, "S0", "S99", "I1", "I99", "/observed_behavior/0", "/summary"]
            node[key] = self.rng.choice((*ids, self.rng.choice(_texts(answer)).upper()))
        elif isinstance(node[key], list):
            node[key] = self.rng.choice(([], [*node[key], *node[key]], ["S1"], node[key][:1]))

    def answer(self, request: ModelRequest) -> Reply:
        """Answer any request of the reading phases."""
        if request.contract == "interpretation-output-v1":
            answer = self.reading()
        elif request.contract == "case_plan_v2":
            answer = self.plan()
        elif request.contract == "hypotheses-output-v1":
            answer = self.candidates(request)
        else:
            answer = self.repair(request)
        if self.valid:
            return answer
        if self.rng.random() < 0.03:
            return Unusable()
        return self.bend(answer) if self.rng.random() < 0.75 else answer


def _nodes(value: Any) -> list[Any]:
    found: list[Any] = []
    if isinstance(value, dict):
        found = [value, *(node for item in value.values() for node in _nodes(item))]
    elif isinstance(value, list):
        found = [value, *(node for item in value for node in _nodes(item))]
    return found


def _texts(value: Any) -> list[str]:
    found: list[str] = []
    for node in _nodes(value):
        items = node.values() if isinstance(node, dict) else node
        found += [item for item in items if isinstance(item, str)]
    return found


async def _until_done(builder: Any) -> DispatchStatus:
    for number in range(1, 9):
        result = await builder.build("BUG-1", attempt_id=f"attempt-{number}")
        if result.status is not DispatchStatus.ERROR:
            return DispatchStatus(result.status)
    raise AssertionError("the number of attempts was not bounded")


def _lost(store: MemoryStore) -> list[str]:
    """Return the accepted parts a repaired interpretation has lost or changed."""
    head = store.latest("BUG-1")
    path = head.pointer("interpretation")
    if path is None:
        return []
    document = read_json(store, head, path)
    if len(document["calls"]) < 2:
        return []
    base = read_json(store, head, document["calls"][0]["path"])["answer"]["interpretation"]
    disputed: set[str] = set()
    for name in sorted(head.files):
        if "/interpretation/" in name and "/errors/" in name:
            record = read_json(store, head, name)
            if record.get("repair"):
                disputed.update(place.split("/")[1] for place in record["repair"]["places"])
    final = document["interpretation"]
    kept = [name for name in base if name in final and name not in disputed]
    return [
        f"{name} was changed outside a repair" for name in kept if _norm(base[name]) != _norm(final[name])
    ]


def _norm(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return [_norm(item) for item in value]
    if isinstance(value, dict):
        return {name: _norm(item) for name, item in value.items()}
    return value


class Played(NamedTuple):
    """How many answers a case took and what the contracts forbid and happened."""

    answers: int
    faults: list[str]


async def _play(author: Author, gateway: ScriptedGateway) -> list[str]:
    store = MemoryStore()
    new_case(store, author.lines)
    mode: PlanningMode = "joint" if author.joint else "separate"
    config = InterpretationConfig(planning=PlanningConfig(mode=mode))
    read = await _until_done(CaseInterpreter(store, gateway, config))
    faults: list[str] = []
    done = read
    if read is DispatchStatus.COMPLETED:
        done = await _until_done(HypothesisBuilder(store, gateway))
    if author.valid and (done is not DispatchStatus.COMPLETED or gateway.asked != (1 if author.joint else 2)):
        faults.append(f"a valid answer was not accepted: {read}, {done}, {gateway.asked} rounds")
    head = store.latest("BUG-1")
    faults += published_faults(store, head) + _lost(store)
    if done is DispatchStatus.COMPLETED:
        silent = ScriptedGateway([])
        again = await HypothesisBuilder(store, silent).build("BUG-1")
        if not again.replayed or again.head.generation != head.generation:
            faults.append("the finished phases do not replay")
    return faults


def play(number: int, *, valid: bool) -> Played:
    """Play both phases with the author of this number."""
    author = Author(number, valid=valid)
    gateway = ScriptedGateway(author.answer)
    try:
        faults = asyncio.run(_play(author, gateway))
    except (VianoError, AssertionError, LookupError, TypeError, ValueError) as error:
        faults = [f"{type(error).__name__}: {error}"]
    return Played(gateway.asked, faults)
