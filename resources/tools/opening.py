"""Opens the inputs of one head for the tools: files of the redacted view, the snapshot, the source tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from resources.tools.database.bridge import Bridge
from resources.tools.database.naming import kind_of
from resources.tools.database.snapshot import DataInput, Snapshot, SnapshotError, ensure
from resources.tools.logs.files import TextFile, wide_twin
from resources.tools.source import SourceTree
from resources.tools.source import search as engine
from resources.tools.source.history import Reported
from viano_assets.canonical import strict_loads
from viano_assets.case.model import CaseDocument, SourceType
from viano_assets.case.view import KEY_POINTER, InputView, ViewFile
from viano_assets.evidence.model import Location
from viano_assets.package.model import Head
from viano_assets.phases.protocols import Progress, ProgressSink, Store

_LITERALS = 10
_FOLDERS = 200


class Opened(NamedTuple):
    """Everything the tools need of one case.

    `trouble` says why there is no snapshot although there are data files; `binary` lists what no tool reads.
    """

    case: CaseDocument
    tree: SourceTree | None
    bridge: Bridge | None
    snapshot: Snapshot | None
    trouble: str | None
    texts: list[TextFile]
    roots: list[Path]
    binary: list[ViewFile]
    notes: tuple[str, ...]
    top_folders: tuple[str, ...]


def open_inputs(store: Store, head: Head, cache: Path, progress: ProgressSink | None) -> Opened:
    """Open the view of a head and what is built over it.

    Raises:
        VianoError: the case or an input cannot be read.
    """

    def notify(text: str, done: int, total: int) -> None:
        if progress is not None:
            progress(Progress(head.case_id, "tools", text, {"bytes": done, "of": total}))

    view = InputView.open(store, head, cache, notify)
    case_path = head.pointer("case")
    raw = store.read(head, case_path) if case_path else b""
    case = CaseDocument.model_validate_json(raw)
    source_root = view.root("source")
    tree = _tree(view, source_root, _reported(case))
    snapshot, trouble = None, None
    derived = view.derived("diagnostics")
    texts: list[TextFile] = []
    roots: list[Path] = []
    if derived is not None:
        root = view.root("diagnostics")
        if root is not None:
            texts, roots = _texts(view, root, derived)
            inputs = [_data_input(file, root) for file in view.files("diagnostics")]
            try:
                snapshot = ensure(
                    derived, inputs, _key(store, head), lambda path, at: notify(f"loading {path}", at, 0)
                )
            except SnapshotError as error:
                trouble = str(error)
    bridge = Bridge(_Literals(source_root, tree)) if source_root is not None else None
    tables = snapshot.catalog.files if snapshot is not None else []
    readable = {text.path for text in texts} | {file.path for file in tables if not file.trouble}
    binary = [f for f in view.files("diagnostics") if f.path not in readable]
    notes = view.notes("diagnostics") + view.notes("source")
    folders = sorted({f.path.split("/", 1)[0] for f in view.files("source") if "/" in f.path} - {".git"})
    return Opened(
        case, tree, bridge, snapshot, trouble, texts, roots, binary, notes, tuple(folders[:_FOLDERS])
    )


def _tree(view: InputView, root: Path | None, reported: Reported) -> SourceTree | None:
    files = view.files("source")
    cache = view.derived("source")
    if root is None or cache is None or not files:
        return None
    return SourceTree(
        root,
        files[0].raw_path,
        files[0].raw_sha256,
        cache,
        view=view.identity("source") or "",
        omitted=view.notes("source"),
        redact=lambda text: view.redactor.redact(text, "code"),
        revision=reported,
    )


_FIELD = re.compile(
    r"\s*(?:(?P<version>[vV]?\d+(?:\.\d+)+[\w.+-]*)|(?P<commit>(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{7,40}))\s*(?:\n|$)"
)
"""The value of a field such as `Version:` or `Commit:`, whose label the case does not keep."""


def _reported(case: CaseDocument) -> Reported:
    """Return the commits and versions the case names; a version with a name may be another product's."""
    commits: dict[str, None] = {}
    versions: dict[str, bool] = {}
    for source in case.sources:
        said = source.attributes
        field = _FIELD.match(source.text) if source.type is SourceType.ENVIRONMENT else None
        if field is not None and field["commit"]:
            commits[field["commit"].lower()] = None
        elif field is not None:
            versions[field["version"]] = True
        if said.get("commit"):
            commits[said["commit"].lower()] = None
        if said.get("version"):
            own = not said.get("name")
            versions[said["version"]] = versions.get(said["version"], False) or own
    own_versions = tuple(version for version, own in versions.items() if own)
    return Reported(tuple(commits), tuple(versions), own_versions)


def _key(store: Store, head: Head) -> bytes | None:
    path = head.pointer(KEY_POINTER)
    value = strict_loads(store.read(head, path)) if path else None
    key = value.get("key") if isinstance(value, dict) else None
    return bytes.fromhex(key) if isinstance(key, str) else None


def _head_bytes(file: Path) -> bytes:
    with file.open("rb") as handle:
        return handle.read(512)


def _data_input(file: ViewFile, root: Path) -> DataInput:
    path = root / file.path
    return DataInput(
        path=file.path,
        file=path,
        kind=kind_of(file.path, _head_bytes(path)),
        encoding=file.encoding,
        input_path=file.raw_path,
        input_sha256=file.raw_sha256,
    )


def _texts(view: InputView, root: Path, derived: Path) -> tuple[list[TextFile], list[Path]]:
    twins = derived / "utf8"
    texts = []
    for file in view.files("diagnostics"):
        if file.binary or file.encoding is None:
            continue
        where = root / file.path
        if file.encoding.startswith("utf-16"):
            where = wide_twin(where, file.encoding, twins, file.path)
        texts.append(
            TextFile(
                file.path,
                where,
                file.encoding,
                data=kind_of(file.path, b"") is not None,
                origin=(file.raw_path, file.raw_sha256),
                exact=not file.redacted,
            )
        )
    return texts, [root, twins] if twins.is_dir() else [root]


class _Literals:
    """Finds quoted literals in the source tree."""

    def __init__(self, root: Path, tree: SourceTree | None) -> None:
        self._root = root
        self._foreign = None if tree is None else tree.foreign

    def __call__(self, text: str) -> Sequence[Location]:
        pattern = "[\"'`]" + re.sub(r"([\\.+*?()|\[\]{}^$#&\-~])", r"\\\1", text) + "[\"'`]"
        found = engine.run(self._root, pattern, regex=True, limit=_LITERALS, foreign=self._foreign)
        places = []
        for match in found.matches:
            data = (self._root / match.path).read_bytes()[: match.start]
            line = data.count(b"\n") + 1
            places.append(Location(path=match.path, line_start=line, line_end=line))
        return places
