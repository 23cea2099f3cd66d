"""`hypotheses-output-v1`: untested causal candidates (seed rules: docs/contracts.md, section 3)."""

from __future__ import annotations

from viano_assets.phases.wire import Text, Wire

CONTRACT = "hypotheses-output-v1"


class Candidate(Wire):
    """One possible cause. The controller, not the model, gives ids, status, confidence and budget."""

    title: Text
    mechanism: Text
    rationale: Text
    distinction: Text
    source_ids: tuple[str, ...]
    interpretation_ids: tuple[str, ...]
    expected_evidence: tuple[Text, ...]
    falsifying_evidence: tuple[Text, ...]
    open_questions: tuple[Text, ...]


class HypothesesAnswer(Wire):
    """The candidates in the order in which they shall be registered; the first is the tester's primary."""

    candidates: tuple[Candidate, ...]
