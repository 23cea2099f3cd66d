"""A case, an operation and a gateway over scripted providers, for every test of the gateway."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from resources.llm.config import LLMConfig
from resources.llm.gateway import LLMGateway
from tests.support.model_server import ModelServer
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import Message, ModelRequest, Operation, Phase, RequestLimits, section

CANARY = "sk-canary-7f3a91d2c4"
ENVIRON = {"CANARY_KEY": CANARY}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


class TurnedClock:
    """A clock that stands still until it is turned; durations are real unless turned too."""

    def __init__(self, start: datetime | None = None) -> None:
        self.moment = start or datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
        self.ticks = 0.0

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        self.ticks += 0.001
        return self.ticks

    def sleep(self, seconds: float) -> None:
        self.turn(seconds)

    def turn(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def request(text: str = "hello", **facts: Any) -> ModelRequest:
    return ModelRequest(
        phase=facts.pop("phase", "hypotheses"),
        contract="hypotheses-output-v1",
        prompt_version="hypotheses_v1",
        messages=(Message(role="system", content="Be exact."), section("case", {"title": text})),
        json_schema=facts.pop("json_schema", SCHEMA),
        limits=facts.pop("limits", RequestLimits(max_output_tokens=100, deadline_s=30)),
        **facts,
    )


def new_case(home: Path, case_id: str = "BUG-1") -> tuple[CheckpointStore, Head]:
    store = CheckpointStore(home)
    change = Change(
        event="case_imported",
        put={"inputs/report/r.md": b"# It breaks\n"},
        raw=frozenset({"inputs/report/r.md"}),
        lifecycle="ASSEMBLED",
    )
    return store, store.create(case_id, change)


def operation(head: Head, wanted: ModelRequest | None = None, **facts: Any) -> Operation:
    return Operation(
        case_id=head.case_id,
        package_id=head.manifest.package_id,
        analysis_revision=head.revision,
        phase=Phase.HYPOTHESES,
        attempt_id=facts.pop("attempt_id", "attempt-1"),
        request=wanted or request(),
        **facts,
    )


def provider(server: ModelServer, route: str = "a", **facts: Any) -> dict[str, Any]:
    return {
        "type": "openai_compatible",
        "model": f"model-{route}",
        "base_url": server.url(route),
        "api_key_env": "CANARY_KEY",
        "allow_loopback": True,
        "deadline_s": 10,
        **facts,
    }


def config(providers: Mapping[str, Mapping[str, Any]], **facts: Any) -> LLMConfig:
    return LLMConfig.model_validate(
        {
            "providers": providers,
            "profiles": {"chain": {"chain": list(providers)}},
            "default_profile": "chain",
            "rounds": facts.pop("rounds", {"jitter": 0}),
            **facts,
        }
    )


def gateway(
    settings: LLMConfig, folder: Path | None = None, clock: Any = None, environ: Any = None, **facts: Any
) -> LLMGateway:
    return LLMGateway(
        settings,
        spend_folder=folder,
        clock=clock or TurnedClock(),
        environ=ENVIRON if environ is None else environ,
        jitter=lambda: 0.0,
        **facts,
    )


def leaks(folder: Path, secret: str = CANARY) -> list[str]:
    """Return the files below `folder` that hold the key in any spelling."""
    forms = [secret.encode(), base64.b64encode(secret.encode()).rstrip(b"="), secret.encode().hex().encode()]
    return sorted(
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    )
