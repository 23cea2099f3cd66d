"""Builds a provider from its settings; a new wire format is one entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from resources.llm.config import OFFLINE, ProviderSettings
from resources.llm.providers.anthropic import AnthropicProvider
from resources.llm.providers.base import Provider
from resources.llm.providers.gemini import GeminiProvider
from resources.llm.providers.http_provider import Surroundings
from resources.llm.providers.offline_provider import Answer, OfflineProvider
from resources.llm.providers.openai_compatible import OpenAICompatibleProvider
from resources.llm.providers.openai_responses import OpenAIResponsesProvider

Builder = Callable[[str, ProviderSettings, Surroundings], Provider]

BUILDERS: Mapping[str, Builder] = {
    "anthropic": AnthropicProvider,
    "gemini": GeminiProvider,
    "openai_compatible": OpenAICompatibleProvider,
    "openai_responses": OpenAIResponsesProvider,
}


def build_provider(
    name: str, settings: ProviderSettings, around: Surroundings, offline: Answer | None = None
) -> Provider:
    """Return the provider `name`; `offline` replaces the offline analyst's function (a seam for tests)."""
    if settings.type == OFFLINE:
        return OfflineProvider(name, offline)
    return BUILDERS[settings.type](name, settings, around)
