"""`LLMGateway`: the model gateway as the phases know it, and its twin that only shows what would leave.

One gateway may serve several threads, each with its own event loop: it holds no loop-bound state, and the
concurrency of every real provider is bounded across all of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from resources.llm.accounting import Ledger
from resources.llm.attempts import AttemptRunner, Link
from resources.llm.clock import Clock, SystemClock
from resources.llm.config import LLMConfig
from resources.llm.egress import EgressFilter, EgressPreview
from resources.llm.providers.addresses import Resolver, system_resolver
from resources.llm.providers.base import ProviderFailure, WireRequest
from resources.llm.providers.http import TransportFactory
from resources.llm.providers.http_provider import Surroundings
from resources.llm.providers.offline_provider import Answer
from resources.llm.providers.registry import build_provider
from resources.llm.records import SpendReport, spend_report
from resources.llm.rounds import CaseLLMRunner, FaultPoint
from viano_assets.canonical import canonical_json
from viano_assets.package.model import Head
from viano_assets.phases.protocols import CallOutcome, ModelRequest, Operation, Store, Usage


def _no_fault(name: str) -> None:
    del name


class LLMGateway:
    """Implements `ModelGateway` over one profile of the configuration.

    Args:
        config: the configuration.
        profile: provider or chain; None takes the default profile.
        spend_folder: where ledgers and journals lie, `HOME/spend`; None keeps them in memory.
        clock, environ, transport, resolver, jitter: the injected outside.
        offline: replaces the offline analyst's function.
        fault: named points at which a test may stop the process.

    Raises:
        ConfigurationError: `unknown_provider`.
    """

    def __init__(
        self,
        config: LLMConfig | None = None,
        profile: str | None = None,
        *,
        spend_folder: Path | None = None,
        clock: Clock | None = None,
        environ: Mapping[str, str] = os.environ,
        transport: TransportFactory | None = None,
        resolver: Resolver = system_resolver,
        jitter: Callable[[], float] = random.random,
        offline: Answer | None = None,
        fault: FaultPoint = _no_fault,
    ) -> None:
        self.config = config or LLMConfig()
        self.profile = profile or self.config.default_profile
        chain = self.config.chain(self.profile)
        self.clock = clock or SystemClock()
        around = Surroundings(self.clock, environ, transport, resolver)
        self._links = [
            Link(
                build_provider(name, self.config.provider(name), around, offline),
                self.config.provider(name).fingerprint(name),
            )
            for name in chain
        ]
        self.ledger = Ledger(spend_folder, self.clock)
        attempts = AttemptRunner(self.config, self.ledger, self.clock, environ, jitter)
        self.runner = CaseLLMRunner(
            self._links,
            self.config.fingerprint(self.profile),
            self.config,
            attempts,
            self.ledger,
            self.clock,
            fault,
        )

    @property
    def links(self) -> Sequence[Link]:
        """The chain's providers in order."""
        return tuple(self._links)

    async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
        """Find the saved answer of `operation` or carry out at most one round (see `CaseLLMRunner`)."""
        return await self.runner.dispatch(store, operation, head)

    def spend(self, store: Store, head: Head) -> Usage:
        """Sum the recorded calls of the head's current analysis revision."""
        del store
        return spend_report(head, head.revision).usage()

    def spend_report(self, head: Head, revision: int | None = None) -> SpendReport:
        """Sum the recorded calls of one revision, or of the whole case, with what is not known of them."""
        return spend_report(head, revision)

    def egress_preview(self, request: ModelRequest) -> list[EgressPreview]:
        """Return, for every provider of the chain, the exact bytes that would be sent; nothing is."""
        filtered = EgressFilter(self.config.egress).apply(request)
        previews = []
        for link in self._links:
            provider = link.provider
            problem = ""
            try:
                wire = provider.wire(filtered.request)
            except ProviderFailure as failure:
                wire, problem = None, f"{failure.code}: {failure.message}"
            if wire is None:
                body = b"" if problem else canonical_json(filtered.request.model_dump(mode="json"))
                wire = WireRequest("", body, key_header="")
            previews.append(
                EgressPreview(
                    provider=provider.name,
                    model=provider.model,
                    url=wire.url,
                    headers=wire.headers,
                    key_header=wire.key_header,
                    key_variable=self.config.provider(provider.name).api_key_env,
                    body=wire.body,
                    applied=filtered.applied,
                    unenforced=wire.unenforced,
                    problem=problem,
                )
            )
        return previews


class EgressShown(Exception):  # noqa: N818  # it ends a dry dispatch; nothing went wrong
    """A phase reached its model call; `previews` hold what would have been sent."""

    def __init__(self, operation: Operation, previews: Sequence[EgressPreview]) -> None:
        super().__init__(f"{operation.phase}: nothing was sent")
        self.operation = operation
        self.previews = previews


class PreviewGateway:
    """A gateway for `viano case egress`: a builder runs up to its model call and stops there.

    The builder may freeze its context, which any later dispatch resumes; nothing is sent or booked.
    """

    def __init__(self, gateway: LLMGateway) -> None:
        self._gateway = gateway

    async def dispatch(self, store: Store, operation: Operation, head: Head | None = None) -> CallOutcome:
        """Show instead of sending.

        Raises:
            EgressShown: always.
        """
        del store, head
        raise EgressShown(operation, self._gateway.egress_preview(operation.request))

    def spend(self, store: Store, head: Head) -> Usage:
        """Sum the recorded calls of the head's current analysis revision."""
        return self._gateway.spend(store, head)
