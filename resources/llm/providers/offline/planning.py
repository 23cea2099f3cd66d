"""Joint planning: interpretation and candidates in one answer, and local repairs of it."""

from __future__ import annotations

from typing import Any

from viano_assets.errors import ConfigurationError
from viano_assets.phases.protocols import ModelRequest


def answer(request: ModelRequest) -> dict[str, Any]:
    """Answer `case_plan_v2`."""
    raise ConfigurationError("unsupported_contract", f"{request.contract} is not answered offline yet")


def repair(request: ModelRequest) -> dict[str, Any]:
    """Answer `case_plan_statement_repair_v2`."""
    raise ConfigurationError("unsupported_contract", f"{request.contract} is not answered offline yet")
