"""A store in which live bytes can be changed together with every declaration of them."""

from __future__ import annotations

from tests.support.memory_store import MemoryStore
from viano_assets.canonical import sha256_hex
from viano_assets.package.model import Head


class Forger(MemoryStore):
    """Lets a test change live bytes together with their declaration, as a careful forger would."""

    def replace(self, path: str, data: bytes, *, declared: bool = True) -> None:
        head = self._heads["BUG-1"][-1]
        blobs = {**head.blobs, path: data}
        entry = type(head.files[path])(sha256_hex(data), len(data))
        checkpoints = [
            type(c)(
                c.generation,
                c.revision,
                c.event,
                c.phase,
                {**c.declares, path: entry.sha256} if declared and path in c.declares else c.declares,
                c.detail,
                c.at,
            )
            for c in head.checkpoints
        ]
        self._heads["BUG-1"][-1] = type(head)(
            head.manifest,
            {**head.files, path: entry},
            tuple(checkpoints),
            head.record_sha256,
            blobs,
            head.raw,
        )


def edited(store: MemoryStore, head: Head, path: str, old: bytes, new: bytes) -> bytes:
    data = store.read(head, path)
    assert old in data
    return data.replace(old, new, 1)
