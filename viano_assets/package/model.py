"""What a package says about itself: heads, manifests, checkpoints and changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

JsonMap: TypeAlias = Mapping[str, Any]


class FileEntry(NamedTuple):
    """One live artifact: its hash (64 hex digits) and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """A halt laid over the lifecycle; it remembers what it interrupted.

    `kind` blocked needs a person (`viano case resume`); deferred ends by itself at `not_before`
    (UTC, ISO 8601 with `Z`).
    """

    kind: Literal["blocked", "deferred"]
    phase: str
    code: str
    message: str
    not_before: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The small mutable view that every generation carries whole.

    `lifecycle` is a state of `viano_assets.case.lifecycle`; `pointers` name the artifacts of the
    current analysis revision (pointer name to path).
    """

    case_id: str
    package_id: str
    generation: int
    analysis_revision: int
    lifecycle: str
    pointers: Mapping[str, str]
    overlay: Overlay | None = None
    routing: str | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One entry of the append-only history: what a generation did and the artifacts it declares.

    `declares` maps each analysis artifact written by this generation to its SHA-256; raw inputs are
    exactly the live files that no checkpoint declares. `detail` holds small JSON facts.
    """

    generation: int
    revision: int
    event: str
    phase: str | None
    declares: Mapping[str, str]
    detail: JsonMap
    at: str


@dataclass(frozen=True, slots=True)
class Head:
    """A validated generation: everything a reader needs, nothing that can change under it."""

    manifest: Manifest
    files: Mapping[str, FileEntry]
    checkpoints: Sequence[Checkpoint]
    record_sha256: str

    @property
    def case_id(self) -> str:
        """The case's name."""
        return self.manifest.case_id

    @property
    def generation(self) -> int:
        """The generation's number, from 1."""
        return self.manifest.generation

    @property
    def revision(self) -> int:
        """The current analysis revision, from 1."""
        return self.manifest.analysis_revision

    def pointer(self, name: str) -> str | None:
        """Return the path that pointer `name` names, or None."""
        return self.manifest.pointers.get(name)

    def raw_inputs(self) -> dict[str, str]:
        """Return path to SHA-256 of every live file that no checkpoint declares (the raw inputs)."""
        declared = {path for checkpoint in self.checkpoints for path in checkpoint.declares}
        return {path: entry.sha256 for path, entry in self.files.items() if path not in declared}


KEEP = "keep"
"""Marks a manifest field that a change leaves as it is."""


@dataclass(frozen=True, slots=True)
class Change:
    """What the next generation adds.

    Args:
        event: stable name of what happened, for example `interpretation_published`.
        phase: the phase that did it; None for intake and lifecycle events.
        put: path to content; a `Path` is streamed, so that large inputs need no memory.
        raw: paths in `put` that are raw inputs and therefore not declared as artifacts.
        pointers: pointers to set; None removes one.
        lifecycle, overlay, routing, revision: `KEEP` leaves the manifest's value.
        detail: small JSON facts for the checkpoint.
    """

    event: str
    phase: str | None = None
    put: Mapping[str, bytes | Path] = field(default_factory=dict)
    raw: frozenset[str] = frozenset()
    pointers: Mapping[str, str | None] = field(default_factory=dict)
    lifecycle: str = KEEP
    overlay: Overlay | Literal["keep"] | None = "keep"
    routing: str | None = KEEP
    revision: int | Literal["keep"] = "keep"
    detail: JsonMap = field(default_factory=dict)
