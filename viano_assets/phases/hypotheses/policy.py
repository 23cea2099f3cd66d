"""The pinned policy of a revision and the initial proposals of the revisions before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viano_assets.canonical import canonical_json
from viano_assets.errors import InputError
from viano_assets.package.model import Head
from viano_assets.phases.common import artifact_path, check_binding, place, read_json
from viano_assets.phases.hypotheses.contract import Candidate
from viano_assets.phases.protocols import Phase, Store

POLICY_SCHEMA = "hypothesis-policy-v1"
_PHASE = Phase.HYPOTHESES


def policy_path(revision: int) -> str:
    """Return where the policy of a revision lies."""
    return artifact_path(_PHASE, revision, "policy.json")


def revision_policy(head: Head, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy a revision pins: `policy`, with what the revision was opened with.

    A revision that was minted to reprocess a known bug carries `prior_generations: exclude`, so that a case
    analysed a hundred times neither shows its own past nor meets the limit of prior documents.
    """
    opened = [c for c in head.checkpoints if c.event == "case_reopened" and c.revision == head.revision]
    own = opened[-1].detail.get("prior_generations") if opened else None
    return {**policy, "prior_generations": own} if own in {"include", "exclude"} else dict(policy)


def policy_document(head: Head, policy: Mapping[str, Any]) -> bytes:
    """Return the bytes of `policy.json`."""
    return canonical_json(
        {
            "schema": POLICY_SCHEMA,
            "case_id": head.case_id,
            "package_id": head.manifest.package_id,
            "analysis_revision": head.revision,
            **policy,
        }
    )


def prior_proposals(
    store: Store, head: Head, limit: int
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return the initial proposals of earlier revisions, labelled, and the bindings of their documents.

    Raises:
        InputError: `too_many_prior_documents`; history is never silently truncated.
        ContractError: an earlier document is not what its checkpoint declared.
    """
    proposals: list[dict[str, Any]] = []
    bindings: list[dict[str, str]] = []
    for checkpoint in head.checkpoints:
        if checkpoint.event != "hypotheses_published" or checkpoint.revision >= head.revision:
            continue
        path = artifact_path(_PHASE, checkpoint.revision, "hypotheses.json")
        binding = check_binding(head, {"path": path, "sha256": checkpoint.declares.get(path)})
        document = read_json(store, head, path)
        bindings.append(binding.as_json())
        proposals.append(
            {
                "analysis_revision": checkpoint.revision,
                "label": "untested initial proposals of an earlier analysis revision",
                "proposals": [
                    {name: item[name] for name in ("id", *Candidate.model_fields)}
                    for item in document["hypotheses"]
                ],
            }
        )
    if len(bindings) > limit:
        raise InputError(
            "too_many_prior_documents",
            f"{len(bindings)} earlier generations of hypotheses, the limit is {limit}",
            where=place(head),
            hint='set prior_generations = "exclude" or raise hypotheses.limits.prior_documents',
        )
    return proposals, bindings
