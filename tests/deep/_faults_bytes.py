"""Damaged bytes: cuts and flips of a head (R6), fuzzed archives and records (R15), full disks (R4)."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.deep._faults_kill import Tally
from tests.support.cases import BIG, grown, next_change
from viano_assets.canonical import sha256_hex
from viano_assets.errors import PackageError, StorageError, VianoError
from viano_assets.package import container, record
from viano_assets.package.archive import ArchivePolicy, open_archive
from viano_assets.package.model import Change
from viano_assets.package.reader import member_places
from viano_assets.package.store import CheckpointStore

CASE = "c"
LIMIT_S = 2.0

Work = Callable[[bytes], None]
Input = tuple[Work, bytes]


def _refused(store: CheckpointStore) -> bool:
    try:
        store.latest(CASE)
    except PackageError:
        return True
    return False


def flips(scratch: Path, tally: Tally, data_flips: int) -> int:
    """Cut the head at every 512 bytes, flip every byte of record and directory, and bytes of content.

    Size and time stay the same. Returns the number of edits; every one that is not refused counts as torn.
    """
    store = CheckpointStore(scratch)
    head = grown(store, CASE, 5)
    put: dict[str, bytes | Path] = {f"c{n}": random.Random(n).randbytes(9_000) for n in range(4)}
    store.commit(head, Change("e", put=put))
    path = scratch / f"cases/{CASE}/gens/g00000006.zip"
    original = path.read_bytes()
    size = container.record_size(original, "x")
    directory = original.rindex(b"PK\x01\x02record.json"[:4])
    positions = [*range(container.RECORD_START + size), *range(directory, len(original))]
    edits = 0
    for cut in range(0, len(original), 512):
        edits += 1
        path.write_bytes(original[:cut])
        if not _refused(store):
            tally.note("torn", f"a head cut at {cut} opens")
    rng = random.Random(6)
    places = [(path, position) for position in positions]
    big = scratch / f"cases/{CASE}/objects/{sha256_hex(BIG)}"
    for number in range(data_flips):
        target = path if number % 2 else big
        length = len(original) if number % 2 else len(BIG)
        places.append((target, number * length // data_flips))
    path.write_bytes(original)
    times = path.stat()
    for target, position in places:
        edits += 1
        with target.open("r+b") as stream:
            stream.seek(position)
            old = stream.read(1)
            stream.seek(position)
            stream.write(bytes([old[0] ^ (1 << rng.randrange(8))]))
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
        if not _refused(store):
            tally.note("torn", f"a flipped byte {position} of {target.name} opens")
        with target.open("r+b") as stream:
            stream.seek(position)
            stream.write(old)
    if _refused(store):
        tally.note("torn", "the repaired head does not open")
    shutil.rmtree(scratch)
    return edits


def _edited(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        position = rng.randrange(len(out) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            out[position : position + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            out[position : position + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x01\0\0\0"))
        elif kind == 2:
            out[position : position + rng.randrange(40)] = b""
        elif kind == 3:
            start = rng.randrange(len(out) + 1)
            out[position:position] = out[start : start + rng.randrange(60)]
        else:
            out[position:position] = rng.randbytes(rng.randrange(8))
    return bytes(out)


def _seeds() -> list[bytes]:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", b"text " * 200)
        archive.writestr("grün.log", b"x")
        with archive.open("wide", "w", force_zip64=True) as stream:
            stream.write(b"y" * 300)
    return [out.getvalue()]


def _read_archive(data: bytes) -> None:
    for policy in (ArchivePolicy(), ArchivePolicy(portable_names=False, skip_special=True)):
        with open_archive(io.BytesIO(data), policy) as archive:
            for entry, stream in archive.members():
                if len(stream.read()) != entry.size:
                    raise AssertionError("content has another length than the entry")


def _archives(rng: random.Random, count: int) -> Iterator[Input]:
    seeds = _seeds()
    for _ in range(count):
        yield _read_archive, _edited(rng, rng.choice(seeds))


def _records(rng: random.Random, count: int, home: Path) -> Iterator[Input]:
    """Records edited as text or as JSON, so that many keep their canonical form."""
    store = CheckpointStore(home)
    head = grown(store, CASE, 3)
    raws = [
        container.read_record((home / f"cases/{CASE}/gens/g{n:08d}.zip").read_bytes(), 1 << 20, "x")
        for n in range(1, head.generation + 1)
    ]
    for _ in range(count):
        raw = rng.choice(raws)
        yield _decoded, _edited(rng, raw) if rng.random() < 0.5 else _odd_field(rng, raw)


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1.5, "", "x", [], {}, [[]], "\0", "../x", {"a": {}}, "f" * 64,
)  # fmt: skip


def _odd_field(rng: random.Random, raw: bytes) -> bytes:
    """Put something odd at a random place of a record and write it in the canonical form again."""
    fields: Any = json.loads(raw)
    holder = fields
    for _ in range(rng.choice((0, 1, 2))):
        values = holder.values() if isinstance(holder, dict) else holder
        inner = [value for value in values if value and isinstance(value, dict | list)]
        if not inner:
            break
        holder = rng.choice(inner)
    place = rng.choice(sorted(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    holder[place] = rng.choice(ODD)
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _decoded(data: bytes) -> None:
    parsed = record.decode(data, "x")
    member_places(parsed)


def feed(inputs: Iterable[Input], what: str, tally: Tally) -> tuple[int, int]:
    """Feed inputs; any but a declared error, and more than two seconds, are counted as torn.

    Returns how many were fed and how many of them were refused.
    """
    fed = refused = 0
    for work, data in inputs:
        fed += 1
        start = time.monotonic()
        try:
            work(data)
        except VianoError:
            refused += 1
        except Exception as error:  # noqa: BLE001 - any other error is a finding
            found = f"{type(error).__name__}: {str(error)[:200]}"
            tally.note("torn", f"{what}: {found} from {data[:120]!r}")
        if time.monotonic() - start > LIMIT_S:
            tally.note("torn", f"{what}: {time.monotonic() - start:.1f} s for {data[:120]!r}")
    return fed, refused


def fuzz(scratch: Path, tally: Tally, count: int) -> int:
    """Feed edited archives, records and exports; only declared errors may come out, each in two seconds."""
    rng = random.Random(15)
    done, _ = feed(_archives(rng, count), "archives", tally)
    done += feed(_records(rng, count, scratch / "records"), "records", tally)[0]
    return done + _exports(rng, scratch, tally, max(1, count // 20))


def _exports(rng: random.Random, scratch: Path, tally: Tally, count: int) -> int:
    """Edited exports: refused leaving nothing, or imported to the very same head."""
    store = CheckpointStore(scratch / "exports")
    head = store.create(CASE, Change("e", put={"r": b"x"}, raw=frozenset({"r"}), lifecycle="RECEIVED"))
    for number in range(2, 5):
        head = store.commit(head, next_change(number))
    store.export(CASE, scratch / "good.zip")
    good = (scratch / "good.zip").read_bytes()
    for number in range(count):
        (scratch / "bad.zip").write_bytes(_edited(rng, good))
        other = CheckpointStore(scratch / f"other{number}")
        try:
            if other.import_package(scratch / "bad.zip") != head:
                tally.note("torn", "an edited export was imported as something else")
            shutil.rmtree(other.home)
        except VianoError:
            if other.case_ids():
                tally.note("torn", "a refused import left a case")
            shutil.rmtree(other.home, ignore_errors=True)
    return count


def full_disks(scratch: Path, tally: Tally) -> int:
    """Commit on real small disks (tmpfs) of 25 sizes around the need; returns how many were tried.

    Needs the right to mount in a namespace of its own; without it nothing is tried and this is said.
    """
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    probe = subprocess.run([*mount, "mount -t tmpfs tmpfs /mnt"], check=False, capture_output=True)
    if probe.returncode:
        sys.stderr.write("full disks: no right to mount here, not tried\n")
        return 0
    scratch.mkdir()
    for kib in range(1_096, 1_096 + 25 * 48, 48):
        script = (
            f"mount -t tmpfs -o size={kib}k tmpfs {scratch} && "
            f"exec {sys.executable} -m tests.deep._faults_bytes {scratch}"
        )
        done = subprocess.run([*mount, script], check=False, capture_output=True, text=True)
        if done.returncode:
            tally.note("torn", f"a disk of {kib} KiB: {done.stderr.strip()[-300:]}")
    return 25


def on_a_small_disk(home: Path) -> None:
    """Create, then commit until the disk is full; the head stays, and freeing space lets it go on."""
    store = CheckpointStore(home)
    ballast = home / "ballast"
    ballast.write_bytes(bytes(32 << 10))
    try:
        head = store.create(CASE, Change("e", put={"r": b"x" * 900_000}, lifecycle="RECEIVED"))
    except StorageError as error:
        if error.code != "storage_full" or store.case_ids():
            raise AssertionError("a failed creation left something") from error
        return
    while True:
        try:
            put: dict[str, bytes | Path] = {
                f"a{head.generation}": random.Random(head.generation).randbytes(20_000)
            }
            head = store.commit(head, Change("e", put=put))
        except StorageError as error:
            if error.code != "storage_full":
                raise
            break
    if CheckpointStore(home).latest(CASE, audit_history=True) != head:
        raise AssertionError("the full disk changed the head")
    ballast.unlink()
    CheckpointStore(home).commit(head, Change("e", put={"small": b"1"}))


if __name__ == "__main__":
    on_a_small_disk(Path(sys.argv[1]))


def temporary() -> tempfile.TemporaryDirectory[str]:
    """Return a scratch directory that removes itself."""
    return tempfile.TemporaryDirectory(prefix="viano-faults-")
