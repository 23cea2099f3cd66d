"""The snapshot of one case's tables: built once, cached by what it was built from, opened read-only."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from resources.tools.database.catalog import Catalog

if TYPE_CHECKING:
    import duckdb

LOADER_VERSION = 3
"""Counts up when the loader's result changes, so that older caches are not used."""

BUILD_SECONDS = 1_800
"""Longest time one import may take."""

Notify = Callable[[str, int], None]
"""Progress: file being read and bytes read of it."""


class DataInput(NamedTuple):
    """A file of the diagnostics that may hold tables, or a manifest that may speak about them."""

    path: str
    file: Path
    kind: str | None
    encoding: str | None
    input_path: str
    input_sha256: str


_INTERRUPT_S = 0.02


class SnapshotError(Exception):
    """The snapshot cannot be built; the message says why."""


class QueryTimeoutError(Exception):
    """A query was interrupted at its deadline."""


class Snapshot:
    """An immutable DuckDB file with its catalog."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "data.duckdb"
        self.catalog = Catalog.model_validate_json((folder / "catalog.json").read_bytes())

    @contextmanager
    def connect(self, seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open for reading, without access to anything else; interrupted after `seconds`.

        Raises:
            QueryTimeoutError: the deadline passed.
        """
        import duckdb  # noqa: PLC0415 - heavy

        connection = duckdb.connect(str(self.file), read_only=True)
        done, fired = threading.Event(), threading.Event()

        def watch() -> None:
            # An interrupt ends only what runs at that moment, so it is repeated until the tool has ended.
            if not done.wait(seconds):
                fired.set()
                while not done.wait(_INTERRUPT_S):
                    connection.interrupt()

        watcher = threading.Thread(target=watch, daemon=True)
        try:
            connection.execute(
                "SET temp_directory=''; SET memory_limit='512MB'; SET threads=2; "
                "SET python_enable_replacements=false; SET enable_external_access=false; "
                "SET lock_configuration=true"
            )
            watcher.start()
            yield connection
        except duckdb.InterruptException as error:
            raise QueryTimeoutError(f"stopped after {seconds:g} s") from error
        finally:
            done.set()
            if watcher.ident is not None:
                watcher.join()
            connection.close()
        if fired.is_set():
            raise QueryTimeoutError(f"stopped after {seconds:g} s")


def ensure(
    derived: Path, inputs: Sequence[DataInput], key: bytes | None, notify: Notify | None = None
) -> Snapshot | None:
    """Return the snapshot, building it when `derived` does not hold it yet; None when there is no data file.

    Raises:
        SnapshotError: the loader failed.
    """
    data = [item for item in inputs if item.kind is not None]
    if not data:
        return None
    folder = derived / f"snapshot-{LOADER_VERSION}"
    if (folder / "catalog.json").is_file():
        return Snapshot(folder)
    work = derived / f".snapshot-{os.getpid()}-{secrets.token_hex(6)}"
    work.mkdir()
    try:
        _build(work, inputs, key, notify)
        try:
            work.rename(folder)
        except OSError:
            if not (folder / "catalog.json").is_file():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Snapshot(folder)


def _may_be_manifest(item: DataInput) -> bool:
    name = item.path.lower()
    return item.encoding is not None and name.endswith(
        (".json", ".csv", ".txt", ".md", ".yaml", ".yml", ".tsv")
    )


def _build(work: Path, inputs: Sequence[DataInput], key: bytes | None, notify: Notify | None) -> None:
    files = {item.path: str(item.file) for item in inputs}
    manifests = [item for item in inputs if _may_be_manifest(item)]
    skip: dict[str, str] = {}
    while True:
        job = {
            "out": str(work),
            "files": [
                {**item._asdict(), "file": str(item.file), "beside": _beside(item, files)}
                for item in inputs
                if item.kind is not None
            ],
            "manifests": [
                {**item._asdict(), "file": str(item.file)} for item in manifests if _small(item.file)
            ],
            "skip": skip,
            "key": key.hex() if key else None,
        }
        outcome = _run(job, notify)
        if outcome.done:
            return
        if not outcome.path or outcome.path in skip:
            raise SnapshotError(f"the loader failed: {outcome.reason}")
        skip[outcome.path] = f"its reader failed: {outcome.reason}"
        for left in work.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()


def _beside(item: DataInput, files: Mapping[str, str]) -> dict[str, str]:
    """Return the write-ahead log and the rollback journal that were shipped beside an SQLite file."""
    if item.kind != "sqlite":
        return {}
    shipped = {name: files.get(f"{item.path}-{name}") for name in ("wal", "journal")}
    return {name: path for name, path in shipped.items() if path is not None}


def _small(file: Path) -> bool:
    return file.stat().st_size <= 4 << 20


class _Outcome(NamedTuple):
    done: bool
    path: str
    reason: str


def _run(job: dict[str, Any], notify: Notify | None) -> _Outcome:
    process = subprocess.Popen(
        [sys.executable, "-m", "resources.tools.database.build"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=job["out"],
        env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
    )
    timer = threading.Timer(BUILD_SECONDS, process.kill)
    timer.start()
    errors: list[bytes] = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read() if process.stderr else b""))
    reader.start()
    path, done = "", False
    try:
        if process.stdin is not None and process.stdout is not None:
            process.stdin.write(json.dumps(job).encode())
            process.stdin.close()
            for line in process.stdout:
                said = json.loads(line)
                done = done or bool(said.get("done"))
                path = said.get("path", path)
                if notify is not None and path:
                    notify(path, int(said.get("at", 0)))
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        timer.cancel()
        reader.join()
        for pipe in (process.stdout, process.stderr, process.stdin):
            if pipe is not None:
                pipe.close()
    if done and code == 0:
        return _Outcome(done=True, path="", reason="")
    last = errors[0].decode("utf-8", errors="replace").strip().splitlines() if errors else []
    reason = f"signal {-code}" if code < 0 else (last[-1][:200] if last else f"exit status {code}")
    return _Outcome(done=False, path=path, reason=reason)
