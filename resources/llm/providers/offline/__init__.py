"""The offline analyst: answers every contract deterministically, without key or network."""

from resources.llm.providers.offline.analyst import answer

__all__ = ["answer"]
