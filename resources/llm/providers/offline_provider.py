"""Adapts the offline analyst, a function from request to answer, to the provider protocol.

It runs in the process, needs no key and no network, costs nothing and is deterministic. The function is
imported at the first call, so that naming the provider stays cheap.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from resources.llm.providers.base import (
    ErrorClass,
    ProviderFailure,
    ProviderReply,
    Tokens,
    WireRequest,
    invalid_answer,
)
from viano_assets.canonical import canonical_json
from viano_assets.errors import ConfigurationError, ContractError
from viano_assets.phases.protocols import ModelRequest

Answer = Callable[[ModelRequest], Mapping[str, Any]]

MODULE = "resources.llm.providers.offline"
MODEL = "offline-analyst"


class OfflineProvider:
    """The offline analyst as a provider.

    Args:
        name: the provider's name.
        answer: the analyst; None takes `answer` of `resources.llm.providers.offline`.
    """

    remote = False
    origin = ""
    model = MODEL

    def __init__(self, name: str = "offline", answer: Answer | None = None) -> None:
        self.name = name
        self._answer = answer

    def wire(self, request: ModelRequest) -> WireRequest | None:
        """Return None: nothing leaves the process."""
        del request
        return None

    async def complete(self, request: ModelRequest, *, request_id: str) -> ProviderReply:
        """Answer in the process.

        Raises:
            ProviderFailure: `offline_missing` when the analyst cannot be loaded, its own code when it does
                not serve the request's contract, `not_json` when its answer is none.
        """
        del request_id
        try:
            value = self._function()(request)
        except ConfigurationError as error:
            raise ProviderFailure(ErrorClass.CONFIGURATION, error.code, error.message) from error
        try:
            text = canonical_json(value)
        except ContractError as error:
            raise invalid_answer("not_json", error.message) from error
        return ProviderReply(text, MODEL, Tokens(0, 0, 0), mode="in process")

    def _function(self) -> Answer:
        if self._answer is None:
            try:
                self._answer = importlib.import_module(MODULE).answer
            except (ImportError, AttributeError) as error:
                raise ProviderFailure(
                    ErrorClass.CONFIGURATION,
                    "offline_missing",
                    f"the offline analyst cannot be loaded: {type(error).__name__}",
                    provider_wide=True,
                ) from error
        return self._answer
