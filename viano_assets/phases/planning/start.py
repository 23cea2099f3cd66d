"""How a joint revision starts: the hypothesis policy is pinned before the one call that needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viano_assets.canonical import sha256_hex
from viano_assets.case.model import CaseDocument
from viano_assets.data_files import prompt
from viano_assets.package.model import Head
from viano_assets.phases.common import Binding
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.hypotheses.policy import (
    policy_document,
    policy_path,
    prior_proposals,
    revision_policy,
)
from viano_assets.phases.planning.context import REPAIR_PROMPT, plan_request
from viano_assets.phases.protocols import ModelRequest, RequestLimits, Store

VERSION = 2
"""Version of the joint contract that new revisions use."""


@dataclass(frozen=True, slots=True)
class JointStart:
    """The request, the `joint_generation` of the context and the policy file to write with it."""

    request: ModelRequest
    generation: dict[str, Any]
    put: dict[str, bytes]


def joint_start(
    store: Store,
    head: Head,
    case: CaseDocument,
    config: HypothesisConfig,
    limits: RequestLimits,
    version: int = VERSION,
) -> JointStart:
    """Build the start of a joint revision; `version` 1 exists for packages of the past only."""
    policy = revision_policy(head, config.policy())
    data = policy_document(head, policy)
    path = policy_path(head.revision)
    proposals: list[dict[str, Any]] = []
    bindings: list[dict[str, str]] = []
    if policy["prior_generations"] == "include":
        proposals, bindings = prior_proposals(store, head, config.limits.prior_documents)
    generation = {
        "version": version,
        "hypothesis_policy": Binding(path, sha256_hex(data)).as_json(),
        "prior_generations": bindings,
        "repair_prompt": prompt(REPAIR_PROMPT) if version >= 2 else None,
    }
    return JointStart(plan_request(case, policy, proposals, limits, version), generation, {path: data})
