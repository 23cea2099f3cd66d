"""A small real case in a store, and answers a fair model would give to the reading phases."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.memory_store import MemoryStore
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.model import CaseDocument, CaseSource, InputFile, Origin, SourceType
from viano_assets.package.model import Change, Head
from viano_assets.phases.protocols import ModelRequest

REPORT = "inputs/report/report.md"

LINES: Sequence[tuple[str, SourceType]] = (
    ("Accepting order 4711 shows the next page, but order_items stays empty.", SourceType.OBSERVATION),
    ("The order total should equal the sum of its items.", SourceType.EXPECTATION),
    ("Open the shop and accept order 4711.", SourceType.REPRODUCTION_STEP),
    ("ERROR OrderWriter: no stage 3 for order 4711", SourceType.TECHNICAL_FACT),
    ("Version 2.4.1 on Linux", SourceType.ENVIRONMENT),
    ("I think the cache in OrderCache is broken.", SourceType.TESTER_ASSUMPTION),
    ("src/order_cache.cpp", SourceType.IMPLEMENTATION_REFERENCE),
    ("The old shop wrote the items at once.", SourceType.EXTERNAL_EXPECTATION),
    ("It happens for every order since Monday.", SourceType.COMMENT),
)
"""Default sources S1…S9, one of nearly every type."""


def sources_of(lines: Sequence[tuple[str, SourceType]]) -> tuple[CaseSource, ...]:
    found: list[CaseSource] = []
    start = 0
    for number, (text, kind) in enumerate(lines, start=1):
        size = len(text.encode())
        origin = Origin(
            input_path=REPORT,
            input_sha256=report_sha(lines),
            line_start=number,
            line_end=number,
            byte_start=start,
            byte_end=start + size,
        )
        found.append(CaseSource(id=f"S{number}", type=kind, text=text, origin=origin))
        start += size + 1
    return tuple(found)


def report_bytes(lines: Sequence[tuple[str, SourceType]]) -> bytes:
    return "".join(f"{text}\n" for text, _ in lines).encode()


def report_sha(lines: Sequence[tuple[str, SourceType]]) -> str:
    return sha256_hex(report_bytes(lines))


def case_document(
    lines: Sequence[tuple[str, SourceType]] = LINES,
    *,
    case_id: str = "BUG-1",
    package_id: str = "00000000-0000-0000-0000-000000000001",
    revision: int = 1,
) -> CaseDocument:
    data = report_bytes(lines)
    return CaseDocument(
        case_id=case_id,
        package_id=package_id,
        analysis_revision=revision,
        title="Order items are missing",
        language="en",
        sources=sources_of(lines),
        inputs=(InputFile(path=REPORT, sha256=sha256_hex(data), bytes=len(data), role="report"),),
        redaction_rules="none",
    )


def case_bytes(document: CaseDocument) -> bytes:
    return canonical_json(document.model_dump(mode="json", by_alias=True))


def new_case(
    store: MemoryStore, lines: Sequence[tuple[str, SourceType]] = LINES, case_id: str = "BUG-1"
) -> Head:
    """Create an assembled case: generation 1 with the report, generation 2 with `case.json`."""
    received = Change(
        event="case_received",
        put={REPORT: report_bytes(lines), "inputs/diagnostics/unknown.bin": b"\x00\xff kept as it is"},
        raw=frozenset({REPORT, "inputs/diagnostics/unknown.bin"}),
        lifecycle="RECEIVED",
        revision=1,
    )
    head = store.create(case_id, received)
    return assemble(store, head, lines)


def assemble(
    store: MemoryStore, head: Head, lines: Sequence[tuple[str, SourceType]] = LINES, revision: int = 1
) -> Head:
    """Publish `case.json` of a revision; from 2 on this is what reopening does, pointers reset."""
    document = case_document(
        lines, case_id=head.case_id, package_id=head.manifest.package_id, revision=revision
    )
    path = f"case/{revision:04d}/case.json"
    pointers: dict[str, str | None] = dict.fromkeys(head.manifest.pointers)
    return store.commit(
        head,
        Change(
            event="case_assembled",
            put={path: case_bytes(document)},
            pointers={**pointers, "case": path},
            lifecycle="ASSEMBLED",
            overlay=None,
            revision=revision,
        ),
    )


def interpretation_answer() -> dict[str, Any]:
    """A valid interpretation of the default case."""

    def said(text: str, *ids: str) -> dict[str, Any]:
        return {"text": text, "source_ids": list(ids)}

    return copy.deepcopy(
        {
            "summary": "Accepting an order leaves its items unwritten.",
            "observed_behavior": [
                said("After accepting order 4711 the table order_items stays empty.", "S1"),
                said("It happens for every order.", "S9"),
            ],
            "expected_behavior": [
                {
                    **said("The total equals the sum of the items.", "S2"),
                    "expectation_completeness": "complete",
                }
            ],
            "reproduction_steps": [said("Accept order 4711.", "S3")],
            "technical_facts": [said("OrderWriter reports no stage 3.", "S4"), said("Version 2.4.1.", "S5")],
            "tester_assumptions": [said("The tester suspects the cache.", "S6")],
            "failure_stage": said("Writing the items after acceptance.", "S1"),
            "first_known_divergence": said("order_items is empty after acceptance.", "S1", "S3"),
            "entities": [
                {"kind": "order", "value": "4711", "label": "the order", "source_ids": ["S1"]},
                {"kind": "class", "value": "OrderWriter", "label": "writer", "source_ids": ["S4"]},
            ],
            "lookups": [
                {"question": "Which stages has order 4711?", "entity": "4711", "certainty": "uncertain"}
            ],
            "missing_information": ["The time of the last good order."],
            "open_questions": [],
        }
    )


MECHANISMS = (
    ("Stage 3 is not configured", "The stage table has no row 3, so the writer stops before the items."),
    ("The writer skips items", "A condition in the writer leaves the loop before the first item."),
    ("The transaction is rolled back", "An error after the write undoes it without a message."),
    ("The page reads another table", "The items are written elsewhere and the page looks at the old table."),
    ("The order id is truncated", "The id is cut to a smaller type and no item matches."),
    ("Events arrive out of order", "The acceptance is handled before the items exist."),
)


def candidate(number: int, *, source_ids: Sequence[str] = ("S1",), ids: Sequence[str] = ()) -> dict[str, Any]:
    """One valid candidate; the first cites the divergence I9 by default."""
    title, mechanism = MECHANISMS[number]
    return {
        "title": title,
        "mechanism": mechanism,
        "rationale": "The report shows a stop after acceptance.",
        "distinction": f"It is about: {title.lower()}.",
        "source_ids": list(source_ids),
        "interpretation_ids": list(ids or (["I9"] if number == 0 else ["I1"])),
        "expected_evidence": [f"A finding that shows: {title.lower()}."],
        "falsifying_evidence": [f"A finding that rules out: {title.lower()}."],
        "open_questions": [],
    }


def hypotheses_answer(count: int = 3) -> dict[str, Any]:
    """A valid batch for the default case."""
    return {"candidates": [candidate(number) for number in range(count)]}


def planned(number: int, *, version: int = 2, paths: Sequence[str] = ()) -> dict[str, Any]:
    """The same candidate in the joint wire form."""
    wire = candidate(number)
    del wire["interpretation_ids"]
    wire["interpretation_paths"] = list(
        paths or (["/first_known_divergence"] if number == 0 else ["/observed_behavior/0"])
    )
    if version == 2:
        wire["premises"] = [
            {
                "kind": "grounded",
                "text": "The report shows it.",
                "source_ids": ["S1"],
                "interpretation_paths": wire["interpretation_paths"][:1],
            },
            {
                "kind": "unverified",
                "text": "Nobody has looked at the code.",
                "source_ids": [],
                "interpretation_paths": [],
            },
        ]
    return wire


def plan_answer(count: int = 3, *, version: int = 2) -> dict[str, Any]:
    """A valid joint answer for the default case."""
    return {
        "interpretation": interpretation_answer(),
        "hypotheses": [planned(number, version=version) for number in range(count)],
    }


def review(
    position: int, decision: str = "retain", replacement: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """One review of a repair."""
    return {
        "position": position,
        "decision": decision,
        "reason": "It rests on the observation alone.",
        "replacement": None if replacement is None else dict(replacement),
    }


def fair_model(request: ModelRequest) -> dict[str, Any]:
    """Answer any reading request of the default case validly."""
    if request.contract == "interpretation-output-v1":
        return interpretation_answer()
    if request.contract == "hypotheses-output-v1":
        return hypotheses_answer()
    if request.contract in {"case_plan_v1", "case_plan_v2"}:
        return plan_answer(version=int(request.contract[-1]))
    raise AssertionError(f"no answer for {request.contract}")
