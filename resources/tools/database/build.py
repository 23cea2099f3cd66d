"""The loader as its own process: reads the data files of one case and leaves a DuckDB file with its catalog.

It is a process because the files are a stranger's: a crash, an endless statement or a swollen file ends here.
The job comes on standard input as JSON; progress goes to standard output as JSON lines; the last line is
`{"done": true}`.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from collections.abc import Callable, Iterable
from mmap import ACCESS_READ, PAGESIZE, mmap
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import duckdb

from resources.tools.database.catalog import Catalog, Extent, NotApplied, SourceFile
from resources.tools.database.ddl import TableShape
from resources.tools.database.extents import script_extent
from resources.tools.database.finish import Origin, finish
from resources.tools.database.formats import Loaded, Target, load_csv, load_json, load_parquet, load_sqlite
from resources.tools.database.manifest import Claim, claims_in_text
from resources.tools.database.script import detect_dialect
from resources.tools.database.sqlfile import ScriptLoader, forget
from resources.tools.database.wal import Beside
from viano_assets.case.redaction import Redactor

MAX_LISTED = 500
"""Most statements listed as not applied; the rest is counted."""

_MEMORY_LIMIT = "320MB"
_ADDRESS_SPACE = 12 << 30
_MAX_WIDE_SCRIPT = 512 << 20
_MANIFEST_BYTES = 1 << 18
_HEAD = 4 << 20


class DataFile(NamedTuple):
    """One file of the job; `kind` is that of `naming.kind_of`."""

    path: str
    file: Path
    kind: str
    encoding: str | None
    input_path: str
    input_sha256: str
    beside: Beside = Beside()

    @property
    def stem(self) -> str:
        """Name of the only table the file can hold."""
        return PurePosixPath(self.path).name.split(".", 1)[0]


class _Build:
    def __init__(self, job: dict[str, Any]) -> None:
        self.files = [
            DataFile(beside=_beside(f["beside"]), file=Path(f["file"]), **{k: f[k] for k in _FIELDS})
            for f in job["files"]
        ]
        self.scratch = Path(job["out"])
        self.manifests = [(m["path"], Path(m["file"]), m["encoding"]) for m in job["manifests"]]
        self.skip: dict[str, str] = job["skip"]
        self.redactor = Redactor(bytes.fromhex(job["key"])) if job["key"] else None
        self.connection = duckdb.connect(str(Path(job["out"]) / "data.duckdb"))
        self.origins: list[Origin] = []
        self.listing: list[SourceFile] = []
        self.not_applied: list[NotApplied] = []
        self.shapes: dict[str, TableShape] = {}
        self.touched: dict[str, str] = {}
        self._next = 0

    def physical(self) -> str:
        self._next += 1
        return f"_load_{self._next}"

    def redact(self, table: str, column: str, value: str) -> str:
        return value if self.redactor is None else self.redactor.cell(table, column, value)

    def run(self) -> Catalog:
        self.connection.execute(f"SET threads=1; SET memory_limit='{_MEMORY_LIMIT}'; SET temp_directory=''")
        self.connection.execute("SET preserve_insertion_order=true; SET enable_external_access=false")
        self.connection.execute("SET lock_configuration=true")
        for data in sorted(self.files, key=_creators_first):
            say(path=data.path, at=0)
            self.connection.execute("BEGIN")
            self._load(data)
            self.connection.execute("COMMIT")
        say(path="", at=0)
        self._touch()
        self._read_manifests()
        self.connection.execute("BEGIN")
        tables = finish(self.connection, self.origins)
        self.connection.execute("COMMIT")
        self.connection.execute("CHECKPOINT")
        self.connection.close()
        names: dict[str, list[str]] = {}
        for table in tables:
            names.setdefault(table.path, []).append(table.name)
        return Catalog(
            tables=tables,
            files=tuple(
                file.model_copy(update={"tables": tuple(names.get(file.path, []))})
                for file in sorted(self.listing, key=lambda file: file.path)
            ),
            not_applied=tuple(self.not_applied[:MAX_LISTED]),
            not_applied_more=max(0, len(self.not_applied) - MAX_LISTED),
        )

    def _load(self, data: DataFile) -> None:
        if data.path in self.skip:
            self._file(data, trouble=self.skip[data.path])
        elif data.kind == "duckdb":
            self._file(
                data, trouble="a DuckDB file of somebody else is not opened; send CSV, Parquet or SQLite"
            )
        elif data.kind == "script":
            self._script(data)
        else:
            self._extract(data)

    def _file(self, data: DataFile, *, trouble: str | None = None, dialect: str | None = None) -> SourceFile:
        entry = SourceFile(
            path=data.path,
            format=data.kind,
            encoding=data.encoding or "binary",
            dialect=dialect,
            trouble=trouble,
        )
        self.listing.append(entry)
        return entry

    def _extract(self, data: DataFile) -> None:
        target = Target(self.connection, self.physical)
        if data.kind == "sqlite":
            loaded = load_sqlite(target, data.file, data.beside, self.scratch, self.redact)
            default = Extent(kind="full", basis="a database file with its own schema")
        else:
            default = Extent(kind="unknown", basis="an extract that does not say what was left out")
            if data.kind == "parquet":
                loaded = load_parquet(target, data.file, data.stem, self.redact)
            elif data.kind == "csv":
                with open_text(data.file, data.encoding) as text:
                    loaded = load_csv(target, text, data.stem)
            else:
                loaded = load_json(target, data.file, lambda: open_text(data.file, data.encoding), data.stem)
        self._keep(data, loaded, default)

    def _keep(self, data: DataFile, loaded: Loaded, default: Extent) -> None:
        entry = self._file(data, trouble=loaded.trouble)
        if loaded.trouble:
            default = Extent(kind="unknown", basis=f"not read to its end: {loaded.trouble}")
        reason = "views, triggers and virtual tables are not loaded"
        for part in loaded.left_out:
            self.not_applied.append(NotApplied(path=data.path, line=None, reason=reason, text=part))
        for sink in loaded.sinks:
            own = default if sink.unsure is None else Extent(kind="unknown", basis=sink.unsure)
            claims = [claim for claim in loaded.claims if claim.name.casefold() == sink.name.casefold()]
            self.origins.append(Origin(sink, entry, data.input_path, data.input_sha256, own, claims))

    def _script(self, data: DataFile) -> None:
        with data.file.open("rb") as handle:
            size = data.file.stat().st_size
            if not size:
                self._file(data, trouble="empty")
                return
            wide = data.encoding is not None and data.encoding.startswith("utf-16")
            if wide and size > _MAX_WIDE_SCRIPT:
                self._file(data, trouble="a UTF-16 script of more than 512 MB")
                return
            content: bytes | mmap
            if wide:
                content = handle.read().decode(str(data.encoding), errors="replace").lstrip("\ufeff").encode()
            else:
                content = mmap(handle.fileno(), 0, access=ACCESS_READ)
            dialect = detect_dialect(content[:_HEAD])
            loader = ScriptLoader(self.connection, content, data.path, dialect, self.physical, self.shapes)
            report = loader.run(_Ticker(data.path, content))
        entry = self._file(data, dialect=dialect)
        self.not_applied.extend(report.not_applied)
        for sink in report.sinks:
            claims = [claim for claim in report.claims if claim.name.casefold() == sink.name.casefold()]
            extent = script_extent(report, sink)
            self.origins.append(Origin(sink, entry, data.input_path, data.input_sha256, extent, claims))
        for name in report.touched:
            self.touched.setdefault(name, data.path)
        for shape in report.shapes:
            self.shapes.setdefault(shape.name.casefold(), shape)
            self.shapes.setdefault(f"{shape.space}.{shape.name}".casefold(), shape)

    def _touch(self) -> None:
        """A table that another file changes by statements which were not applied is no longer whole."""
        for origin in self.origins:
            path = self.touched.get(origin.sink.name.casefold())
            if path is not None and origin.default.kind == "full":
                basis = f"statements for it in {path} were not applied"
                origin.default = Extent(kind="unknown", basis=basis)

    def _read_manifests(self) -> None:
        names = {origin.sink.name for origin in self.origins}
        files = {PurePosixPath(origin.file.path).name: origin.sink.name for origin in self.origins}
        for path, file, encoding in self.manifests:
            with open_text(file, encoding) as text:
                content = text.read(_MANIFEST_BYTES)
            for claim in claims_in_text(content, path, sorted(names | set(files))):
                self._claim(claim, path)

    def _claim(self, claim: Claim, path: str) -> None:
        for origin in self.origins:
            base = PurePosixPath(origin.file.path).name
            if origin.file.path != path and claim.name in {origin.sink.name, base}:
                extract = origin.file.format not in {"script", "sqlite"}
                if extract or not self._has_extract(origin.sink.name) or claim.name == base:
                    origin.claims.append(claim)

    def _has_extract(self, name: str) -> bool:
        return any(
            other.sink.name == name and other.file.format in {"csv", "json", "parquet"}
            for other in self.origins
        )


_FIELDS = ("path", "kind", "encoding", "input_path", "input_sha256")


def _beside(paths: dict[str, str]) -> Beside:
    return Beside(**{name: Path(path) for name, path in paths.items()})


def _creators_first(data: DataFile) -> tuple[int, str]:
    if data.kind != "script":
        return (2, data.path)
    with data.file.open("rb") as handle:
        return (0 if b"CREATE TABLE" in handle.read(_HEAD).upper() else 1, data.path)


def open_text(file: Path, encoding: str | None) -> io.TextIOWrapper:
    """Open a text file of the view; what its encoding does not cover becomes a visible escape."""
    name = {"utf-16-le": "utf-16-le", "utf-16-be": "utf-16-be", "cp1252": "cp1252"}.get(
        encoding or "", "utf-8-sig"
    )
    stream = file.open(encoding=name, errors="backslashreplace", newline="")
    if name.startswith("utf-16") and stream.read(1) != "\ufeff":
        stream.seek(0)
    return stream


class _Ticker:
    """Says now and then how far a script is, and lets go of what was read."""

    def __init__(self, path: str, content: bytes | mmap) -> None:
        self._path = path
        self._content = content
        self._next = 0

    def __call__(self, at: int) -> None:
        if at >= self._next:
            self._next = at + (8 << 20)
            done = max(0, at - (8 << 20)) // PAGESIZE * PAGESIZE
            forget(self._content, 0, done)
            say(path=self._path, at=at)


def say(**what: Any) -> None:
    """Write one line of progress."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))


def main(lines: Iterable[str], limits: Callable[[], None] = _limits) -> None:
    """Carry out the job whose JSON stands in `lines`."""
    limits()
    job = json.loads("".join(lines))
    catalog = _Build(job).run()
    out = Path(job["out"]) / "catalog.json"
    out.write_text(catalog.model_dump_json(exclude_none=True), encoding="utf-8")
    say(done=True)


if __name__ == "__main__":
    main(sys.stdin)
