"""The measured trial's shape: 30 MB of inputs, 148 generations, six artifacts of 2 to 40 KB in each."""

from __future__ import annotations

import json
import math
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from viano_assets.package.filesystem import OsFileSystem
from viano_assets.package.model import Change, Head
from viano_assets.package.store import CheckpointStore

GENERATIONS = 148
CASE = "bench"
PACKAGE_ID = "00000000-0000-4000-8000-000000000148"


class Step(NamedTuple):
    """What one generation writes: path to content, and its four events."""

    put: dict[str, bytes]
    events: list[str]


class Untimed(OsFileSystem):
    """Builds a long package quickly: nothing is flushed, because only the result is measured."""

    def fsync(self, descriptor: int) -> None:
        """Leave it to the kernel; `descriptor` stays open."""
        assert descriptor >= 0


class Counting(OsFileSystem):
    """Counts flushes."""

    flushes = 0

    def fsync(self, descriptor: int) -> None:
        self.flushes += 1
        super().fsync(descriptor)


def inputs(seed: int = 1) -> dict[str, bytes]:
    """20 MiB of log text and 10 MiB that do not shrink."""
    rng = random.Random(seed)
    words = [f"{rng.choice('abcdefgh')}{rng.randrange(10_000)}" for _ in range(4_000)]
    lines = bytearray()
    while len(lines) < 20 << 20:
        lines += f"2030-01-01T00:00:{rng.random() * 60:09.6f} {' '.join(rng.choices(words, k=9))}\n".encode()
    return {
        "inputs/diagnostics/all.log": bytes(lines[: 20 << 20]),
        "inputs/source/source.zip": rng.randbytes(10 << 20),
    }


def _artifact(rng: random.Random, words: list[str], size: int) -> bytes:
    items = []
    length = 0
    while length < size:
        text = " ".join(rng.choices(words, k=12))
        items.append(
            {"id": f"E{rng.randrange(10**6)}", "text": text, "sha256": f"{rng.getrandbits(256):064x}"}
        )
        length += len(text) + 100
    return json.dumps(items, separators=(",", ":")).encode()[:size]


def steps(count: int = GENERATIONS - 1, seed: int = 2) -> Iterator[Step]:
    """Three new artifacts and three rewritten ones per generation, sizes log-uniform from 2 to 40 KB."""
    rng = random.Random(seed)
    words = [f"{rng.choice('klmnopqr')}{rng.randrange(5_000)}" for _ in range(3_000)]
    for number in range(2, count + 2):
        names = [f"analysis/{number:05d}/{k}.json" for k in ("context", "evidence", "ledger")]
        names += [f"analysis/current/{k}.json" for k in ("index", "plan", "summary")]
        put = {
            name: _artifact(rng, words, int(math.exp(rng.uniform(math.log(2_048), math.log(40_960)))))
            for name in names
        }
        yield Step(put, [f"event-{number}-{k}" for k in range(4)])


def first(store: CheckpointStore, files: dict[str, bytes]) -> Head:
    """Create the case."""
    change = Change("case_received", put=dict(files), raw=frozenset(files), lifecycle="RECEIVED")
    return store.create(CASE, change, package_id=PACKAGE_ID)


def change_of(step: Step) -> Change:
    """Return the change of one step."""
    return Change("published", "investigation", put=dict(step.put), detail={"events": step.events})


def long_package(home: Path, files: dict[str, bytes], work: list[Step], generations: int) -> Head:
    """Build a package of `generations` that ends in the same live paths and bytes as `work` alone.

    The generations before the last ones rewrite six paths a time with small content of their own.
    """
    store = CheckpointStore(home, filesystem=Untimed())
    head = first(store, files)
    paths = sorted({path for step in work for path in step.put})
    with store.lock(CASE):
        filler = generations - 1 - len(work)
        for number in range(filler):
            chosen = [paths[(number * 6 + k) % len(paths)] for k in range(6)]
            put: dict[str, bytes | Path] = {
                path: f'{{"n":{number},"k":{k}}}'.encode() * 4 for k, path in enumerate(chosen)
            }
            events = [f"event-{number}-{k}" for k in range(4)]
            head = store.commit(
                head, Change("published", "investigation", put=put, detail={"events": events})
            )
        for step in work:
            head = store.commit(head, change_of(step))
    return head


class ZipSizes(NamedTuple):
    """Bytes of one self-contained ZIP per generation, all together."""

    deflated: int
    stored: int


def zip_sizes(files: dict[str, bytes], work: list[Step]) -> ZipSizes:
    """Add up what one ZIP of all live files per generation takes.

    ZIP members are packed one by one, so each content is packed once here and counted in every
    generation it lives in; the sum is what writing them all would give.
    """
    live: dict[str, tuple[int, int]] = {}
    history = b""
    deflated = stored = 0
    for step in [Step(files, []), *work]:
        for path, data in step.put.items():
            live[path] = (_deflated(data), len(data))
        history += json.dumps(step.events).encode() + b"\n"
        headers = sum(30 + 46 + 2 * len(path) for path in live) + 22
        deflated += headers + sum(size for size, _ in live.values()) + _deflated(history)
        stored += headers + sum(size for _, size in live.values()) + len(history)
    return ZipSizes(deflated, stored)


def _deflated(data: bytes) -> int:
    engine = zlib.compressobj(6, zlib.DEFLATED, -15)
    return len(engine.compress(data)) + len(engine.flush())
