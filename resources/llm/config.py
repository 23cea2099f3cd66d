"""`llm.toml`: providers, chains, limits, prices and egress rules, all from the operator.

A case, a report or a package can never change a provider. Keys stand in the environment; the file only
names the variables. Nothing read from the file is repeated in an error text except names of settings.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.data_files import CONFIG
from viano_assets.errors import ConfigurationError

OFFLINE = "offline"

ProviderType = Literal["offline", "openai_compatible", "openai_responses", "anthropic", "gemini"]

DEFAULT_URLS: Mapping[str, str] = {
    "openai_compatible": "https://api.openai.com/v1",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}

STRUCTURED: Mapping[str, tuple[str, ...]] = {
    "offline": ("auto",),
    "openai_compatible": ("auto", "json_schema", "json_object", "prompted"),
    "openai_responses": ("auto", "json_schema", "json_object", "prompted"),
    "anthropic": ("auto", "tool", "output_format"),
    "gemini": ("auto", "json_schema", "json_object", "prompted"),
}


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class ProviderSettings(_Settings):
    """One provider: which wire format, where, which model, which key variable, which limits.

    `allow_loopback` and `allow_private` open local targets (and plain http to them); `deadline_s` bounds
    one attempt from name resolution to the last byte; `structured` fixes how the schema is transported.
    """

    type: ProviderType
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    structured: str = "auto"
    dialect: Literal["auto", "openai", "llama"] = "auto"
    stream: bool = False
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_output_tokens: Annotated[int, Field(gt=0)] | None = None
    deadline_s: Annotated[float, Field(gt=0, le=3_600)] = 180.0
    connect_timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    max_wire_bytes: Annotated[int, Field(gt=0)] = 8_388_608
    max_decoded_bytes: Annotated[int, Field(gt=0)] = 8_388_608
    concurrency: Annotated[int, Field(gt=0, le=64)] = 2
    allow_loopback: bool = False
    allow_private: bool = False

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, value: str) -> str:
        if value and re.fullmatch(r"[A-Z_][A-Z0-9_]*", value) is None:
            raise ValueError("must be the name of an environment variable, never the key itself")
        return value

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str) -> str:
        if value:
            check_base_url(value)
        return value.rstrip("/")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.type != OFFLINE and not self.model:
            raise ValueError("model is missing")
        if self.structured not in STRUCTURED[self.type]:
            raise ValueError(f"structured must be one of {', '.join(STRUCTURED[self.type])}")
        if self.type != OFFLINE:
            url = urlsplit(self.url)
            local = self.allow_loopback or self.allow_private
            if url.scheme == "http" and not local:
                raise ValueError("base_url must be https; plain http needs allow_loopback or allow_private")
        return self

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return self.base_url or DEFAULT_URLS.get(self.type, "")

    @property
    def origin(self) -> str:
        """Scheme, host and port; the key goes nowhere else."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""

    def fingerprint(self, name: str) -> str:
        """Return the hash of all that decides how this provider answers; holds no secret."""
        facts = self.model_dump(mode="json", exclude={"concurrency"})
        return sha256_hex(canonical_json({"name": name, **facts, "base_url": self.url}))


def check_base_url(value: str) -> SplitResult:
    """Refuse a base URL that carries anything but scheme, host, port and path.

    Raises:
        ValueError: without repeating the URL, which may hold a secret.
    """
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ValueError("base_url is not a URL") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("base_url must be http(s)://host[:port][/path]")
    if parts.query or parts.fragment or "?" in value or "#" in value:
        raise ValueError(
            "base_url must not carry a query or fragment; name the key's variable in api_key_env"
        )
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise ValueError("base_url must not carry a user or password")
    if "%" in parts.netloc or not value.isascii() or not value.isprintable() or " " in value or "\\" in value:
        raise ValueError("base_url holds a zone id, an escape in the host or a character no host has")
    if port == 0:
        raise ValueError("base_url names port 0")
    try:
        ipaddress.ip_address(parts.hostname)
    except ValueError:
        if re.fullmatch(r"[0-9.]+|0[xX][0-9a-fA-F.x]+", parts.hostname):
            raise ValueError("base_url holds a numeric host that is no plain IP address") from None
    return parts


class Profile(_Settings):
    """What `--provider` names: an ordered chain of providers."""

    chain: Annotated[tuple[str, ...], Field(min_length=1)]


class RoundPolicy(_Settings):
    """Bounds of the one retry loop; seconds are wall time, nobody sleeps them."""

    max_rounds: Annotated[int, Field(gt=0, le=1_000)] = 10
    backoff_base_s: Annotated[float, Field(ge=0)] = 2.0
    backoff_factor: Annotated[float, Field(ge=1)] = 2.0
    max_wait_s: Annotated[float, Field(gt=0)] = 3_600.0
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.1
    after_unknown: Literal["continue", "stop"] = "continue"


class Price(_Settings):
    """What a million tokens cost in the table's currency, with the date and source of the figure."""

    provider: str
    model: str
    input: Annotated[Decimal, Field(ge=0)]
    cached: Annotated[Decimal, Field(ge=0)] | None = None
    output: Annotated[Decimal, Field(ge=0)]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: Annotated[str, Field(min_length=1)]


class EgressRedaction(_Settings):
    """Replace every match of `pattern` in every string that leaves."""

    pattern: str
    replacement: str = "[redacted]"

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error.msg}") from error
        return value


class EgressRules(_Settings):
    """What must not leave, for every provider and for failover alike."""

    deny_files: tuple[str, ...] = ()
    deny_tables: tuple[str, ...] = ()
    deny_columns: tuple[str, ...] = ()
    redact: tuple[EgressRedaction, ...] = ()


class LLMConfig(_Settings):
    """The whole file; every part has a default, the default profile needs no key and no network."""

    default_profile: str = OFFLINE
    max_cost: Annotated[Decimal, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    max_cost_per_day: Annotated[Decimal, Field(ge=0)] | None = None
    max_tokens_per_day: Annotated[int, Field(ge=0)] | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    unknown_price: Literal["allow", "refuse"] | None = None
    rounds: RoundPolicy = RoundPolicy()
    egress: EgressRules = EgressRules()
    providers: dict[str, ProviderSettings] = {}
    profiles: dict[str, Profile] = {}
    prices: tuple[Price, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = self.provider_names()
        if OFFLINE in self.providers and self.providers[OFFLINE].type != OFFLINE:
            raise ValueError("providers.offline is the built-in analyst; choose another name")
        for name, profile in self.profiles.items():
            if name in names:
                raise ValueError(f"profiles.{name} has the name of a provider")
            missing = [link for link in profile.chain if link not in names]
            if missing:
                raise ValueError(f"profiles.{name} names the unknown provider {missing[0]}")
            if len(set(profile.chain)) != len(profile.chain):
                raise ValueError(f"profiles.{name} names a provider twice")
        if self.default_profile not in self.profile_names():
            raise ValueError("default_profile names neither a provider nor a profile")
        origins: dict[str, str] = {}
        for name, provider in self.providers.items():
            if provider.api_key_env and (
                origins.setdefault(provider.api_key_env, provider.origin) != provider.origin
            ):
                raise ValueError(
                    f"providers.{name}: the key variable is already bound to another origin; use its own"
                )
        return self

    def provider_names(self) -> list[str]:
        """Return the known providers, `offline` included."""
        return sorted({OFFLINE, *self.providers})

    def profile_names(self) -> list[str]:
        """Return everything `--provider` accepts."""
        return sorted({*self.provider_names(), *self.profiles})

    def provider(self, name: str) -> ProviderSettings:
        """Return one provider's settings."""
        return self.providers.get(name) or ProviderSettings(type="offline")

    def chain(self, profile: str | None = None) -> tuple[str, ...]:
        """Return the providers of a profile in order.

        Raises:
            ConfigurationError: `unknown_provider` naming the known ones.
        """
        name = profile or self.default_profile
        if name in self.profiles:
            return self.profiles[name].chain
        if name in self.provider_names():
            return (name,)
        raise ConfigurationError(
            "unknown_provider",
            f"there is no provider profile {name[:64]!r}",
            hint=f"known: {', '.join(self.profile_names())}; add others in llm.toml (docs/models.md)",
        )

    def fingerprint(self, profile: str | None = None) -> str:
        """Return the hash of the chain's configuration and the egress rules; holds no secret."""
        chain = [self.provider(name).fingerprint(name) for name in self.chain(profile)]
        return sha256_hex(canonical_json({"chain": chain, "egress": self.egress.model_dump(mode="json")}))

    @property
    def refuses_unknown_price(self) -> bool:
        """True when a call without a known price may not be made: by default when money has a ceiling."""
        if self.unknown_price is not None:
            return self.unknown_price == "refuse"
        return self.max_cost is not None or self.max_cost_per_day is not None

    @classmethod
    def load(cls, path: str | Path | None = None) -> LLMConfig:
        """Read the file; a missing file or None gives the defaults.

        Raises:
            ConfigurationError: `invalid_config` naming the file and the setting, never a value.
        """
        if path is None or not Path(path).is_file():
            return cls()
        try:
            with Path(path).open("rb") as stream:
                data: dict[str, Any] = tomllib.load(stream, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise _invalid(path, "the file is not TOML") from error
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
            key = ".".join(str(part) for part in detail["loc"]) or "the file"
            kind = "unknown setting" if detail["type"] == "extra_forbidden" else detail["msg"]
            raise _invalid(path, f"{key}: {kind}") from None

    @classmethod
    def discover(cls, home: Path, environ: Mapping[str, str] = os.environ) -> LLMConfig:
        """Read `llm.local.toml` of the settings folder.

        The folder is `$VIANO_CONFIG`, else `HOME/config` when it exists, else the shipped one.

        Raises:
            ConfigurationError: `invalid_config`.
        """
        named = environ.get("VIANO_CONFIG")
        own = home / "config"
        folder = Path(named) if named else own if own.is_dir() else CONFIG
        return cls.load(folder / "llm.local.toml")


def _invalid(path: str | Path, message: str) -> ConfigurationError:
    return ConfigurationError(
        "invalid_config",
        message,
        where=str(path),
        hint="config/llm.example.toml shows and explains every setting",
    )
