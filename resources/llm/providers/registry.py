"""Builds a provider from its settings; a new wire format is one entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from resources.llm.config import OFFLINE, ProviderSettings
from resources.llm.providers.base import Provider
from resources.llm.providers.http_provider import Surroundings
from resources.llm.providers.offline_provider import Answer, OfflineProvider
from resources.llm.providers.openai_compatible import OpenAICompatibleProvider

Builder = Callable[[str, ProviderSettings, Surroundings], Provider]

BUILDERS: Mapping[str, Builder] = {
    "openai_compatible": OpenAICompatibleProvider,
}


def build_provider(
    name: str, settings: ProviderSettings, around: Surroundings, offline: Answer | None = None
) -> Provider:
    """Return the provider `name`; `offline` replaces the offline analyst's function (a seam for tests)."""
    if settings.type == OFFLINE:
        return OfflineProvider(name, offline)
    return BUILDERS[settings.type](name, settings, around)
