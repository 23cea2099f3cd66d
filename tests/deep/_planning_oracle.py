"""What the contracts forbid, written down a second time and independently of the product's rules.

Every function returns what is wrong with something that was published; empty means nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.support.memory_store import MemoryStore
from viano_assets.package.model import Head
from viano_assets.phases.common import read_json

SEEN = {"observation", "report", "comment"}
GROUNDS: Mapping[str, set[str]] = {
    "observed_behavior": SEEN,
    "expected_behavior": {"expectation", "external_expectation"},
    "reproduction_steps": {"reproduction_step"},
    "technical_facts": {"technical_fact", "environment"},
    "tester_assumptions": {"tester_assumption"},
    "failure_stage": SEEN,
    "first_known_divergence": SEEN | {"reproduction_step"},
}
WEAK = {"tester_assumption", "external_expectation", "implementation_reference"}
ORDER = (
    "observed_behavior",
    "expected_behavior",
    "reproduction_steps",
    "technical_facts",
    "tester_assumptions",
    "failure_stage",
    "first_known_divergence",
)


def sources_of(store: MemoryStore, head: Head) -> dict[str, dict[str, Any]]:
    """Return the case's sources by id."""
    path = head.pointer("case")
    assert path is not None
    return {source["id"]: source for source in read_json(store, head, path)["sources"]}


def flat(reading: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return category and statement in the order of their ids."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for category in ORDER:
        value = reading[category]
        if isinstance(value, (list, tuple)):
            found += [(category, item) for item in value]
        elif value is not None:
            found.append((category, value))
    return found


def reading_faults(reading: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what a published reading may not contain."""
    for category, statement in flat(reading):
        ids = statement["source_ids"]
        if not ids or len(set(ids)) != len(ids):
            yield f"{category}: cites nothing or twice"
        yield from (
            f"{category}: {i} may not ground it"
            for i in ids
            if i not in sources or sources[i]["type"] not in GROUNDS[category]
        )
    for entity in reading["entities"]:
        ids = entity["source_ids"]
        if not ids or any(i not in sources for i in ids):
            yield "entity: unknown or no source"
        elif not any(entity["value"] in sources[i]["text"] for i in ids):
            yield "entity: not literal"
    everything = [source["text"] for source in sources.values()]
    named = [entity["value"] for entity in reading["entities"]]
    for lookup in reading["lookups"]:
        if lookup["certainty"] != "uncertain":
            yield "lookup: certain although not done"
        if not any(lookup["entity"] in text for text in (*everything, *named)):
            yield "lookup: invented entity"


def same(one: str, other: str) -> bool:
    """Return whether two texts differ only in presentation, case, punctuation and space."""

    def bare(text: str) -> str:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        kept = ("L", "N", "S", "M")
        return "".join(c for c in folded if unicodedata.category(c).startswith(kept))

    return bare(one) == bare(other)


def batch_faults(
    batch: Sequence[Mapping[str, Any]],
    statements: Sequence[Mapping[str, Any]],
    sources: Mapping[str, Mapping[str, Any]],
    policy: Mapping[str, Any],
) -> Iterator[str]:
    """Yield what a published batch may not contain."""
    by_id = {statement["id"]: statement for statement in statements}
    if not policy["min_hypotheses"] <= len(batch) <= policy["max_hypotheses"]:
        yield "count outside the policy"
    for number, item in enumerate(batch, start=1):
        if any(i not in sources for i in item["source_ids"]) or not item["source_ids"]:
            yield f"H{number}: unknown or no source"
            continue
        if any(i not in by_id for i in item["interpretation_ids"]):
            yield f"H{number}: unknown statement"
            continue
        cited = set(item["source_ids"])
        cited.update(s for i in item["interpretation_ids"] for s in by_id[i]["source_ids"])
        if all(sources[i]["type"] in WEAK for i in cited):
            yield f"H{number}: stands on nothing seen or recorded"
        if not item["expected_evidence"] or not item["falsifying_evidence"]:
            yield f"H{number}: predicts nothing"
        for other in batch[: number - 1]:
            if same(item["title"], other["title"]) or same(item["mechanism"], other["mechanism"]):
                yield f"H{number}: repeats another"
    if batch:
        yield from _first(batch[0], statements, sources)


def _first(
    item: Mapping[str, Any], statements: Sequence[Mapping[str, Any]], sources: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    if not any(i in sources and sources[i]["type"] in SEEN for i in item["source_ids"]):
        yield "H1: cites nothing a person saw"
    for category in ("first_known_divergence", "failure_stage", "observed_behavior"):
        focus = {s["id"] for s in statements if s["category"] == category}
        if focus:
            if not focus & set(item["interpretation_ids"]):
                yield "H1: beside the focus"
            return
    yield "H1: although nothing was observed"


def published_faults(store: MemoryStore, head: Head) -> list[str]:
    """Return everything wrong with what the head publishes of the reading phases."""
    faults: list[str] = []
    sources = sources_of(store, head)
    reading_path, batch_path = head.pointer("interpretation"), head.pointer("hypotheses")
    if reading_path is None:
        if batch_path is not None or any(p.endswith("/interpretation.json") for p in head.files):
            faults.append("a part of a rejected answer was published")
        return faults
    document = read_json(store, head, reading_path)
    faults += reading_faults(document["interpretation"], sources)
    expected = [(c, s["text"], s["source_ids"]) for c, s in flat(document["interpretation"])]
    told = [(s["category"], s["text"], s["source_ids"]) for s in document["statements"]]
    if expected != told or [s["id"] for s in document["statements"]] != [
        f"I{n}" for n in range(1, len(told) + 1)
    ]:
        faults.append("aliases do not name the statements")
    if batch_path is None:
        if any(p.endswith(("/hypotheses.json", "/registry.json")) for p in head.files):
            faults.append("a part of a rejected batch was published")
        return faults
    policy = read_json(store, head, str(head.pointer("hypothesis_policy")))
    batch = read_json(store, head, batch_path)["hypotheses"]
    faults += batch_faults(batch, document["statements"], sources, policy)
    faults += _controller_faults(
        batch, read_json(store, head, str(head.pointer("hypothesis_registry"))), policy
    )
    return faults


def _controller_faults(
    batch: Sequence[Mapping[str, Any]], registry: Mapping[str, Any], policy: Mapping[str, Any]
) -> Iterator[str]:
    for number, item in enumerate(batch, start=1):
        role = "tester_primary" if number == 1 else "alternative"
        facts = (item["id"], item["position"], item["role"], item["status"], item["confidence"])
        if facts != (f"H{number}", number, role, "new", "unassessed"):
            yield "controller fields"
        if item["budget_allocation"]["initial"] != policy["initial_budget"]:
            yield "allocation"
    counts = (registry["created_count"], registry["remaining_slots"], registry["next_id"])
    if counts != (len(batch), policy["max_hypotheses"] - len(batch), f"H{len(batch) + 1}"):
        yield "registry counts"
    if [c["id"] for c in registry["creations"]] != [item["id"] for item in batch]:
        yield "registry creations"
