"""The offline analyst: answers every contract deterministically, without key or network.

It sees what a model sees, a `ModelRequest` and the tool results inside it, and nothing else. It knows
nothing about any particular project; how it reads, proposes, looks and judges: docs/analyst.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resources.llm.providers.offline import investigating, judging, planning, proposing, reading
from viano_assets.errors import ConfigurationError
from viano_assets.phases.protocols import ModelRequest

_ANSWERS: dict[str, Callable[[ModelRequest], dict[str, Any]]] = {
    "interpretation-output-v1": reading.answer,
    "hypotheses-output-v1": proposing.answer,
    "case_plan_v2": planning.answer,
    "case_plan_statement_repair_v2": planning.repair,
    "investigation_project_v12": investigating.answer,
    "diagnosis-output-v1": judging.answer,
}


def answer(request: ModelRequest) -> dict[str, Any]:
    """Return the wire answer to `request` as a JSON object.

    Raises:
        ConfigurationError: `unsupported_contract` for a contract the analyst does not know.
    """
    try:
        respond = _ANSWERS[request.contract]
    except KeyError:
        raise ConfigurationError(
            "unsupported_contract",
            f"the offline analyst does not answer {request.contract}",
            hint="choose another provider profile",
        ) from None
    return respond(request)
