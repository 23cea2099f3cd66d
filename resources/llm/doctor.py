"""`viano doctor --provider P`: one tiny real call to each provider of a profile.

Reports whether it answers, which structured-output mode it takes, whether the answer satisfies the schema
that was sent, latency, tokens, and the price on record. Without a profile only the configuration is read
and nothing is sent.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from resources.llm.accounting import Amount, Ceiling
from resources.llm.attempts import Attempt, AttemptRunner, Link, Slot
from resources.llm.config import LLMConfig
from resources.llm.egress import Filtered
from resources.llm.gateway import LLMGateway
from resources.llm.keys import read_key
from resources.llm.providers.http import TransportFactory
from resources.llm.providers.http_provider import HttpProvider
from viano_assets.phases.protocols import Message, ModelRequest, RequestLimits, section

_DOCTOR_CASE = "-doctor"

PROBE = ModelRequest(
    phase="doctor",
    contract="doctor-probe-v1",
    prompt_version="doctor_v1",
    messages=(
        Message(role="system", content="You are asked whether you can answer in the given JSON form."),
        section("probe", {"task": "Return the number of the letters in the word `case` as count."}),
    ),
    json_schema={
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["count"],
        "additionalProperties": False,
    },
    limits=RequestLimits(max_output_tokens=64, deadline_s=60),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """What is known of one provider; `state` is that of a doctor's check."""

    profile: str
    reachable: bool
    state: Literal["ok", "missing", "failed"]
    detail: str
    remedy: str = ""
    latency_ms: int | None = None
    mode: str = ""
    conforms: bool | None = None
    served_model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    price: str = ""
    unenforced: tuple[str, ...] = ()


async def probe_profiles(
    home: Path,
    wanted: str | None,
    *,
    config: LLMConfig | None = None,
    environ: Mapping[str, str] = os.environ,
    transport: TransportFactory | None = None,
) -> list[Probe]:
    """Probe every provider of profile `wanted`, or read the configuration when it is None.

    Raises:
        ConfigurationError: `unknown_provider`, or a configuration file that cannot be used.
    """
    settings = config or LLMConfig.discover(home, environ)
    if wanted is None:
        return [_configured(settings, name, environ) for name in settings.provider_names()]
    gateway = LLMGateway(settings, wanted, spend_folder=home / "spend", environ=environ, transport=transport)
    runner = AttemptRunner(settings, gateway.ledger, gateway.clock, environ)
    return [await _probe(settings, gateway, runner, link) for link in gateway.links]


def _configured(settings: LLMConfig, name: str, environ: Mapping[str, str]) -> Probe:
    provider = settings.provider(name)
    if provider.type == "offline":
        return Probe(name, reachable=True, state="ok", detail="the built-in analyst; no key, no network")
    about = f"{provider.type}, {provider.model}, {provider.origin}"
    if provider.api_key_env and read_key(environ, provider.api_key_env) is None:
        return Probe(
            name,
            reachable=False,
            state="missing",
            detail=f"{about}; {provider.api_key_env} is not set",
            remedy=f"export {provider.api_key_env}=... if you want to use it",
        )
    return Probe(
        name,
        reachable=True,
        state="ok",
        detail=f"{about}; configured, not called",
        price=_price(settings, name),
    )


async def _probe(settings: LLMConfig, gateway: LLMGateway, runner: AttemptRunner, link: Link) -> Probe:
    provider = link.provider
    if not isinstance(provider, HttpProvider):
        return _configured(settings, provider.name, {})
    with gateway.ledger.journal(_DOCTOR_CASE) as journal:
        journal.clear()
        made: Attempt | Ceiling | None = None
        for number in range(1, 4):
            slot = Slot(uuid.uuid4().hex, 1, number, 1)
            facts = {"case_id": _DOCTOR_CASE, "phase": "doctor"}
            made = await runner.run(link, PROBE, Filtered(PROBE, {}), slot, facts, Amount(0, None), journal)
            journal.clear()
            if isinstance(made, Ceiling) or made.downgrade is None:
                break
            provider.use_mode(made.downgrade)
    if made is None or isinstance(made, Ceiling):
        return Probe(
            provider.name,
            reachable=False,
            state="failed",
            detail="a ceiling of llm.toml forbids the call" if made is None else made.code,
            remedy="raise the ceiling, or add the model's price",
        )
    return _told(settings, provider, made)


def _told(settings: LLMConfig, provider: HttpProvider, made: Attempt) -> Probe:
    record = made.record
    answered = record["outcome"] == "answered"
    conforms = answered and made.answer is not None and _conforms(made.answer)
    facts: dict[str, Any] = {
        "latency_ms": record["latency_ms"],
        "mode": record["mode"],
        "served_model": record["served_model"],
        "price": _price(settings, provider.name),
        "unenforced": tuple(record["unenforced"]),
    }
    if record["outcome"] in {"answered", "invalid"}:
        facts |= {"tokens_in": record["tokens_in"], "tokens_out": record["tokens_out"], "conforms": conforms}
    speed = f"{record['latency_ms'] / 1000:.1f} s, {record['mode']}"
    if not answered:
        return Probe(
            provider.name,
            reachable=record["outcome"] == "invalid",
            state="failed",
            detail=f"{record['code']}: {record['message']}",
            remedy="see docs/models.md for this code",
            **facts,
        )
    detail = f"{record['served_model'] or provider.model} answered in {speed}; {facts['price']}"
    if not conforms:
        return Probe(
            provider.name,
            reachable=True,
            state="failed",
            detail=f"{detail}; the answer does not follow the schema",
            remedy='set structured = "prompted" for this provider, or use a stronger model',
            **facts,
        )
    return Probe(provider.name, reachable=True, state="ok", detail=detail, **facts)


def _conforms(answer: Mapping[str, Any]) -> bool:
    count = answer.get("count")
    return set(answer) == {"count"} and type(count) is int and 0 <= count <= 99


def _price(settings: LLMConfig, name: str) -> str:
    model = settings.provider(name).model
    found = next((p for p in settings.prices if p.provider == name and p.model == model), None)
    if found is None:
        return "price unknown"
    return f"{found.input}/{found.output} {settings.currency} per million tokens in/out ({found.date})"
