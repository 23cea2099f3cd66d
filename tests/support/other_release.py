"""A store through which a phase publishes what a release with other renderers would have published."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.memory_store import MemoryStore
from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.package.model import Change, Head

Rewording = Callable[[bytes], bytes]
Rebinding = Callable[[dict[str, Any], bytes], dict[str, Any]]


def worded(text: bytes) -> bytes:
    """Return a rendering in words that no renderer of this release uses."""
    return b"As an earlier release said it.\n" + text


def stepped(by: int) -> Rebinding:
    """Return how a release whose renderers are `by` versions away binds a rendering."""
    return lambda binding, text: {"version": binding["version"] + by, "sha256": sha256_hex(text)}


class OtherRelease(MemoryStore):
    """Changes every rendering, and its binding in the document, on the way into the package."""

    def __init__(self, reword: Rewording, rebind: Rebinding) -> None:
        super().__init__()
        self._reword, self._rebind = reword, rebind
        self.reworded: list[str] = []

    def commit(self, head: Head, change: Change) -> Head:
        put: dict[str, bytes | Path] = dict(change.put)
        for path, content in change.put.items():
            document = _document(content)
            if document is not None:
                folder = path.rpartition("/")[0]
                document["renderings"] = self._renderings(put, folder, document["renderings"])
                self._replace(put, path, canonical_json(document))
        return super().commit(head, dataclasses.replace(change, put=put))

    def _renderings(
        self, put: dict[str, bytes | Path], folder: str, stored: Mapping[str, dict[str, Any]]
    ) -> dict[str, Any]:
        found = {}
        for name, binding in stored.items():
            old = put[f"{folder}/{name}"]
            assert isinstance(old, bytes)
            text = self._reword(old)
            put[f"{folder}/{name}"] = text
            self.reworded.append(name)
            found[name] = self._rebind(binding, text)
        return found

    @staticmethod
    def _replace(put: dict[str, bytes | Path], path: str, data: bytes) -> None:
        """Put the document and name its new hash wherever the change named the old one."""
        old = put[path]
        assert isinstance(old, bytes)
        before, after = sha256_hex(old).encode(), sha256_hex(data).encode()
        for other, content in put.items():
            if isinstance(content, bytes):
                put[other] = content.replace(before, after)
        put[path] = data


def _document(content: bytes | Path) -> dict[str, Any] | None:
    if not isinstance(content, bytes) or not content.startswith(b"{"):
        return None
    document = json.loads(content)
    return document if "renderings" in document else None
