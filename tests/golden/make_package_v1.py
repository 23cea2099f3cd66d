"""Writes the golden packages of schema `package-v1`, as this release leaves them.

Run once per schema version: `python -m tests.golden.make_package_v1 FOLDER`. The bytes are kept and never
made again: later releases must open them (or, for the refused ones, refuse them with the same code). The
script is kept to say how they came to be.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tests.support.cases import PACKAGE_ID, ManualClock
from viano_assets.package import container
from viano_assets.package.model import Change, Head, Overlay
from viano_assets.package.reader import member_places
from viano_assets.package.record import decode
from viano_assets.package.store import CheckpointStore

CASE = "GOLD-1"
GENERATIONS = 259


def _grown(store: CheckpointStore, clock: ManualClock) -> Head:
    raw: dict[str, bytes | Path] = {
        "inputs/report/Größe.md": "# Absturz\n\nEs stürzt ab.\n".encode(),
        "inputs/source/source.zip": b"\0" * ((1 << 20) + 3),
    }
    change = Change("case_received", put=raw, raw=frozenset(raw), lifecycle="RECEIVED")
    head = store.create(CASE, change, package_id=PACKAGE_ID)
    halt = Overlay("deferred", "hypotheses", "rate_limited", "try later", "2030-01-03T00:00:00Z")
    with store.lock(CASE):
        while head.generation < GENERATIONS:
            clock.step(7)
            number = head.generation + 1
            put: dict[str, bytes | Path] = {"analysis/latest.json": b"[%d]" % number}
            if number % 50 == 0:
                put[f"analysis/{number:04d}.json"] = b'{"n":%d}' % number
            head = store.commit(
                head,
                Change(
                    "published",
                    "interpretation" if number % 2 else None,
                    put=put,
                    pointers={"latest": "analysis/latest.json"} if number == 2 else {},
                    lifecycle="ASSEMBLED",
                    overlay=halt if number == 200 else "keep",
                    routing="review" if number == 3 else "keep",
                    revision=2 if number == 100 else "keep",
                    detail={"number": number, "text": "ä", "nested": {"list": [1, None, True]}},
                ),
            )
    return head


def _rewrite(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    raw = container.read_record(data, 1 << 20, "x")
    places = member_places(decode(raw, "x"))
    members = [container.Member(name, data[at : at + size]) for at, size, name in places]
    path.write_bytes(container.build(raw.replace(old, new), members))


def main(target: Path) -> None:
    """Write `export.zip`, `newer.zip`, the homes and what they are expected to be."""
    clock = ManualClock()
    work = target / "work"
    store = CheckpointStore(work, clock=clock)
    head = _grown(store, clock)
    store.export(CASE, target / "export.zip")
    shutil.rmtree(work)
    expected = {
        "record_sha256": head.record_sha256,
        "generation": head.generation,
        "files": {path: list(entry) for path, entry in sorted(head.files.items())},
        "pointers": dict(head.manifest.pointers),
        "lifecycle": head.manifest.lifecycle,
        "routing": head.manifest.routing,
        "revision": head.revision,
        "overlay": None if head.manifest.overlay is None else head.manifest.overlay.not_before,
        "raw_inputs": head.raw_inputs(),
        "entry_100": {"at": head.checkpoints[99].at, "declares": dict(head.checkpoints[99].declares)},
    }
    (target / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for name in ("home", "refused", "newer"):
        small = CheckpointStore(target / name, clock=ManualClock())
        first = Change("case_received", put={"r": b"x"}, raw=frozenset({"r"}), lifecycle="RECEIVED")
        at = small.create(CASE, first, package_id=PACKAGE_ID)
        for number in (2, 3):
            at = small.commit(at, Change("published", put={"a": b"%d" % number}))
    _rewrite(target / f"refused/cases/{CASE}/gens/g00000002.zip", b'"published"', b'"withdrawn"')
    _rewrite(target / f"newer/cases/{CASE}/gens/g00000003.zip", b'"package-v1"', b'"package-v2"')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
