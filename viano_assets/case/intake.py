"""`viano case import`: from files on disk to a package at generation 2.

Everything is checked before anything is written: ids, files, the report's text, every archive member. A
refused import leaves nothing behind. Archives are kept byte for byte; a directory becomes one deterministic
ZIP. Large inputs are streamed and never held in memory.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from viano_assets.canonical import canonical_json
from viano_assets.case.archives import is_archive_name, open_role_archive
from viano_assets.case.assembler import CaseAssembler, check_readings
from viano_assets.case.inputs import RawInput, Role
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.case.packing import pack_directory
from viano_assets.case.ports import CaseStore
from viano_assets.case.readers import check_report
from viano_assets.case.redaction import Redactor
from viano_assets.case.view import KEY_POINTER, KEY_SCHEMA
from viano_assets.errors import InputError
from viano_assets.package.model import Change, Head
from viano_assets.package.names import name_problem
from viano_assets.partitions import check_case_id

KEY_PATH = "case/redaction-key.json"
"""Where the package keeps its redaction key; it is never shown to a tool or a model."""

_CHUNK = 1 << 20


ProgressSink: TypeAlias = Callable[[str], None]
"""Told in words what is being done and how far it is."""


def import_case(
    store: CaseStore,
    *,
    case_id: str,
    report: Path,
    diagnostics: Path | None = None,
    source: Path | None = None,
    name_encoding: str | None = None,
    progress: ProgressSink | None = None,
    randomness: Callable[[int], bytes] = secrets.token_bytes,
) -> Head:
    """Create a case from a report and, where given, a diagnostic archive and the source.

    An import that was killed between its two generations is completed by repeating it with the same
    inputs.

    Args:
        store: where the package goes.
        case_id: as the person names it.
        report: a text file, a JSON or CSV export, a mail, or a directory or archive mixing them.
        diagnostics: an archive, a directory or a single file.
        source: an archive or a directory.
        name_encoding: encoding of archive names that are not marked as UTF-8.
        progress: told about every step.
        randomness: source of the redaction key.

    Raises:
        InputError: what is wrong with which file, and what to do; nothing was written then.
    """
    _check_new_id(case_id)
    received = _interrupted(store, case_id)
    named: list[tuple[Role, Path]] = [("report", report)]
    named += [("diagnostics", diagnostics)] if diagnostics is not None else []
    named += [("source", source)] if source is not None else []
    with prepared_inputs(named, name_encoding=name_encoding, progress=progress) as inputs:
        if received is None:
            received = _create(store, case_id, inputs, name_encoding, randomness)
        elif {item.path: item.sha256 for item in map(RawInput.described, inputs)} != received.raw_inputs():
            raise _exists(case_id)
        return CaseAssembler(store).assemble(received)


def _interrupted(store: CaseStore, case_id: str) -> Head | None:
    """Return the head of an import of this name that stopped before its canonical case, None for no case.

    Raises:
        InputError: `case_exists` when the name is taken.
    """
    taken = [known for known in store.case_ids() if known.lower() == case_id.lower()]
    if not taken:
        return None
    head = store.latest(case_id) if case_id in taken else None
    if head is None or head.manifest.lifecycle != Lifecycle.RECEIVED.value or head.generation > 1:
        raise _exists(taken[0])
    return head


def _check_new_id(case_id: str) -> None:
    """Refuse the id that a home copied to another system could not hold; cases of such a name still open."""
    problem = name_problem(check_case_id(case_id))
    if problem is not None:
        raise InputError(
            "invalid_case_id",
            f"{case_id!r} cannot be a case id: it has {problem}",
            hint="choose another id, for example BUG-" + case_id.strip("."),
        )


def _exists(case_id: str) -> InputError:
    return InputError(
        "case_exists",
        "a case of this name exists (letter case does not count)",
        where=case_id,
        hint=f"add information to it with: viano case reopen {case_id}; or choose another id",
    )


def _create(
    store: CaseStore,
    case_id: str,
    inputs: list[RawInput],
    name_encoding: str | None,
    randomness: Callable[[int], bytes],
) -> Head:
    secret = randomness(32)
    check_readings(inputs, Redactor(secret), name_encoding)
    key: dict[str, object] = {"schema": KEY_SCHEMA, "key": secret.hex()}
    if name_encoding is not None:
        key["name_encoding"] = name_encoding
    raw = {item.package_path: item.path for item in inputs}
    return store.create(
        case_id,
        Change(
            event="case_received",
            put={**raw, KEY_PATH: canonical_json(key)},
            raw=frozenset(raw),
            pointers={KEY_POINTER: KEY_PATH},
            lifecycle=Lifecycle.RECEIVED.value,
            detail={"inputs": sorted(raw)},
        ),
    )


@contextmanager
def prepared_inputs(
    named: Sequence[tuple[Role, Path]],
    *,
    added_in: int | None = None,
    name_encoding: str | None = None,
    progress: ProgressSink | None = None,
) -> Iterator[list[RawInput]]:
    """Check every input and pack the directories; the packed ones live until the context ends.

    `added_in` is the revision that adds the inputs to a case that exists.

    Raises:
        InputError: `missing_input`, `empty_report`, `report_too_large`, `binary_report`,
            `not_an_archive`, `same_name_twice`, and what packing and the archive reader refuse.
    """
    for _, path in named:
        _check_exists(path)
    with tempfile.TemporaryDirectory(prefix="viano-import-") as folder:
        inputs: list[RawInput] = []
        for number, (role, path) in enumerate(named):
            packed = path
            name = _file_name(path)
            if path.is_dir():
                name = f"{name}.zip"
                packed = Path(folder) / f"{number}.zip"
                _packed(path, packed, progress, portable=role != "source")
            _check_input(role, packed, name, path, name_encoding, progress)
            place = f"inputs/{role}/{name}" if added_in is None else f"inputs/{role}/r{added_in:04d}/{name}"
            if place.casefold() in {known.package_path.casefold() for known in inputs}:
                raise InputError(
                    "same_name_twice",
                    "two files have the same name",
                    where=str(path),
                    hint="rename one of them",
                )
            inputs.append(RawInput(role, place, packed))
        yield inputs


class _Meter:
    """Reports a long step each time another sixteenth of a gibibyte or a twentieth of it is done."""

    def __init__(self, what: str, total: int | None, progress: ProgressSink | None) -> None:
        self._what = what
        self._total = total
        self._progress = progress
        self._step = max(1 << 20, (total or (1 << 30)) // 20)
        self._next = self._step

    def at(self, done: int) -> None:
        """Say how far it is when that is worth a line."""
        if self._progress is None or done < self._next:
            return
        self._next = done + self._step
        of = f" of {self._total / 1e6:.0f}" if self._total else ""
        self._progress(f"{self._what}: {done / 1e6:.0f}{of} MB")


def _check_exists(path: Path) -> None:
    if not path.exists():
        raise InputError("missing_input", "there is no such file", where=str(path), hint="check the path")
    if not (path.is_file() or path.is_dir()):
        raise InputError(
            "special_file",
            "this is neither a file nor a directory",
            where=str(path),
            hint="name a file or directory",
        )
    if path.is_file():
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise InputError(
                "unreadable_file",
                f"cannot be read: {error.strerror}",
                where=str(path),
                hint="check its permissions",
            ) from error


def _file_name(path: Path) -> str:
    """Return the name the file gets in the package: its own, with what a path must not hold replaced."""
    name = path.resolve().name if path.name in {"", ".", ".."} else path.name
    clean = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in name).strip(" .")
    clean = clean.encode("utf-8", "replace").decode("utf-8")
    return clean or "input"


def _packed(path: Path, target: Path, progress: ProgressSink | None, *, portable: bool) -> None:
    done = 0
    meter = _Meter(f"packing {path.name}", None, progress)

    def notify(size: int) -> None:
        nonlocal done
        done += size
        meter.at(done)

    pack_directory(path, target, notify, portable=portable)


def _check_input(
    role: Role,
    packed: Path,
    name: str,
    named: Path,
    name_encoding: str | None,
    progress: ProgressSink | None,
) -> None:
    archive = is_archive_name(name)
    if role == "source" and not archive:
        raise InputError(
            "not_an_archive",
            "the source is neither a directory nor an archive",
            where=str(named),
            hint="give a directory, .zip, .tar, .tar.gz, .tar.bz2 or .tar.xz",
        )
    if packed.stat().st_size == 0:
        code = "empty_report" if role == "report" else "empty_input"
        raise InputError(
            code, "the file is empty", where=str(named), hint="name the file that holds the text"
        )
    if archive:
        _check_archive(role, packed, named, name_encoding, progress)
    if role == "report":
        check_report(packed, name, where=str(named), name_encoding=name_encoding)


def _check_archive(
    role: Role, packed: Path, named: Path, name_encoding: str | None, progress: ProgressSink | None
) -> None:
    """Read every member to its end, so that a broken archive is refused before anything is written."""
    done = 0
    files = 0
    with open_role_archive(packed, role, str(named), name_encoding) as archive:
        meter = _Meter(f"checking {named.name}", sum(entry.size for entry in archive.entries), progress)
        for _, content in archive.members():
            files += 1
            while chunk := content.read(_CHUNK):
                done += len(chunk)
                meter.at(done)
    if not files:
        raise InputError("empty_archive", "the archive holds no files", where=str(named), hint="pack it anew")
