"""Source tools: exact search, ranked retrieval, reading, symbols, references, constants, history."""

from __future__ import annotations

from resources.tools.source.arguments import SOURCE_TOOL_SPECS, check
from resources.tools.source.tree import SourceTree

__all__ = ["SOURCE_TOOL_SPECS", "SourceTree", "check"]
