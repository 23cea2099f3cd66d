"""Synthetic units of the evidence index, whose rows say which publication they belong to."""

from __future__ import annotations

from typing import Any

from viano_assets.partitions import CaseRevision


def unit(case_id: str, revision: int = 1) -> str:
    return CaseRevision(case_id, revision).key


def unit_rows(case_id: str, mark: int, *, evidence: int = 3) -> dict[str, list[dict[str, Any]]]:
    """Return one case row and `evidence` records, all with `mark` in them."""
    keys: dict[str, Any] = {
        "case_id": case_id,
        "package_id": "00000000-0000-4000-8000-000000000000",
        "analysis_revision": 1,
        "partition_key": unit(case_id),
    }
    return {
        "cases": [{**keys, "title": f"case {case_id}", "generation": mark, "sources": evidence}],
        "evidence": [
            {**keys, "evidence_id": f"E{number}", "tool": "source.read", "bytes": mark, "content": "x" * 40}
            for number in range(1, evidence + 1)
        ],
    }


WHOLE = """
SELECT c.case_id, c.generation, c.sources, count(e.evidence_id) AS found,
       coalesce(min(e.bytes), c.generation) AS least, coalesce(max(e.bytes), c.generation) AS most
FROM cases c LEFT JOIN evidence e USING (partition_key)
GROUP BY c.case_id, c.generation, c.sources ORDER BY ALL
"""
"""Per case: its mark, how many records it says it has, how many there are, their least and greatest mark."""
