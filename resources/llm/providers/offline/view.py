"""Typed access to the sections of a request, as the analyst reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viano_assets.phases.protocols import ModelRequest

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """One case source: its id, type, kind, text and parsed attributes."""

    id: str
    type: str
    text: str
    kind: str | None
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """The case as every phase shows it."""

    title: str
    language: str
    sources: tuple[Source, ...]
    roles: frozenset[str]

    def of(self, *types: str) -> list[Source]:
        """Return the sources of the given types in catalogue order."""
        return [source for source in self.sources if source.type in types]

    def text(self, *types: str) -> str:
        """Return the joined text of the given types, or of all sources when none is given."""
        chosen = self.of(*types) if types else list(self.sources)
        return "\n".join(source.text for source in chosen)

    @property
    def german(self) -> bool:
        """True when the report is written in German."""
        return self.language == "de"


def one(request: ModelRequest, name: str) -> Any:
    """Return the last section `name`, or an empty object when there is none."""
    found = request.sections(name)
    return found[-1] if found else {}


def case_of(request: ModelRequest) -> Case:
    """Read the `case` section."""
    data = one(request, "case")
    sources = tuple(
        Source(
            id=item["id"],
            type=item["type"],
            text=item["text"],
            kind=item.get("kind"),
            attributes=dict(item.get("attributes") or {}),
        )
        for item in data.get("sources", [])
    )
    roles = frozenset(item["role"] for item in data.get("inputs", []))
    return Case(data.get("title", ""), data.get("language", "und"), sources, roles)


def clip(text: str, limit: int) -> str:
    """Return `text` on one line, cut at a word boundary to at most `limit` characters."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[: limit - 1].rsplit(" ", 1)[0]
    return (cut or flat[: limit - 1]) + "…"
