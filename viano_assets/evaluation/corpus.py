"""Known-bug corpora: what they consist of and how their cases get into a home (docs/evaluation.md).

A corpus is a folder of case folders (`bug.toml`, `report.*`, perhaps `diagnostics`, `source`, `gold.json`) or
a recipe. Building imports every bug as a case; the gold stays outside the packages, in `HOME/corpora`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.inputs import Role
from viano_assets.case.intake import import_case, prepared_inputs
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.case.ports import CaseStore
from viano_assets.data_files import CONFIG
from viano_assets.errors import BlockedError, ConfigurationError, InputError, PackageError, VianoError
from viano_assets.evaluation.gold import Gold, read_gold
from viano_assets.evaluation.recipes import RecipeEntry, archive_for, read_entries
from viano_assets.evaluation.stored import CorpusFolder, check_corpus_name, content_hash, write_document
from viano_assets.package.model import Head

ROLES = ("diagnostics", "source")
Told = Callable[[str], None]


class CorpusSpec(BaseModel):
    """A corpus file: `kind` folder with `folder`, or recipe with `entries`; paths beside the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["folder", "recipe"]
    title: str = ""
    folder: str | None = None
    entries: str | None = None


class Corpus(NamedTuple):
    """A named corpus and where its file lies."""

    name: str
    spec: CorpusSpec
    base: Path


class Bug(NamedTuple):
    """One known bug, ready to be imported; `facts` are the columns that describe it, `gold` the answer."""

    bug_id: str
    case_id: str
    facts: dict[str, str | None]
    gold: Gold
    report: Path | None
    report_text: str | None
    inputs: dict[str, Path]
    entry: RecipeEntry | None
    sha256: str


class Built(NamedTuple):
    """What building a corpus did: imported now, there already, left out (bug, code, message)."""

    imported: int
    present: int
    skipped: tuple[tuple[str, str, str], ...]
    sha256: str


class Corpora(dict[str, Corpus]):
    """Corpora by name; `refused` holds why a file beside them is none, by its stem."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[str, VianoError] = {}


def find_corpora(*folders: Path) -> Corpora:
    """Return the corpora of `config/corpora` and of further folders, by name; later ones win.

    A file that cannot be used stops no other; it stands in `refused`.
    """
    found = Corpora()
    paths: dict[str, Path] = {}
    for folder in (CONFIG / "corpora", *folders):
        paths |= {path.stem: path for path in sorted(folder.glob("*.toml"))} if folder.is_dir() else {}
    for name, path in sorted(paths.items()):
        try:
            found[name] = _read_spec(path)
        except (ConfigurationError, InputError) as error:
            found.refused[name] = error
    return found


def _read_spec(path: Path) -> Corpus:
    try:
        spec = CorpusSpec.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            "corpus_invalid", str(error).split("\n", 1)[0], where=str(path), hint="see docs/evaluation.md"
        ) from error
    if (spec.folder if spec.kind == "folder" else spec.entries) is None:
        raise ConfigurationError(
            "corpus_invalid", "the corpus names no content", where=str(path), hint="see docs/evaluation.md"
        )
    return Corpus(check_corpus_name(path.stem), spec, path.parent)


def corpus_of_folder(name: str, folder: Path) -> Corpus:
    """Return a corpus over a folder of case folders."""
    return Corpus(
        check_corpus_name(name), CorpusSpec(kind="folder", folder=str(folder.resolve())), folder.parent
    )


Skipped = tuple[str, str, str]
"""What was left out: bug or folder, code, message."""


def read_bugs(corpus: Corpus, refused: list[Skipped] | None = None) -> list[Bug]:
    """Return the bugs of a corpus, ordered by id.

    Args:
        corpus: the corpus.
        refused: gets the case folders that cannot be used; None raises for the first.

    Raises:
        InputError: `bug_invalid`, `gold_invalid`, `recipe_invalid`, naming the file; `duplicate_bug`;
            `corpus_empty`.
    """
    left_out: list[Skipped] = [] if refused is None else refused
    if corpus.spec.kind == "recipe":
        entries = read_entries(corpus.base / str(corpus.spec.entries))
        bugs = [_bug_of_entry(entry) for entry in entries]
    else:
        folder = corpus.base / str(corpus.spec.folder)
        bugs = []
        for path in _case_folders(folder):
            try:
                bugs.append(_bug_of_folder(path))
            except InputError as error:
                if refused is None:
                    raise
                left_out.append((path.name, error.code, error.message))
    if not bugs and not left_out:
        raise InputError(
            "corpus_empty", "there is no known bug", where=corpus.name, hint="see docs/evaluation.md"
        )
    _check_distinct(bugs)
    return sorted(bugs, key=lambda bug: bug.bug_id)


def _case_folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(
            "corpus_empty", "there is no such folder", where=str(folder), hint="check `folder` or --folder"
        )
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _check_distinct(bugs: Sequence[Bug]) -> None:
    """Refuse bugs that would share a case: ids that are the same, or become the same case id."""
    seen: dict[str, str] = {}
    for bug in bugs:
        name = bug.case_id.casefold()
        if name in seen:
            raise InputError(
                "duplicate_bug",
                f"the bugs {seen[name]!r} and {bug.bug_id!r} would be one case",
                where=bug.case_id,
                hint="give each bug an id of its own; letters, digits, '.', '_' and '-' are kept",
            )
        seen[name] = bug.bug_id


def _bug_of_entry(entry: RecipeEntry) -> Bug:
    gold = read_gold(entry.gold, entry.id)
    facts: dict[str, str | None] = {
        "title": entry.title,
        "kind": entry.package,
        "language": entry.language,
        "origin": f"{entry.package}=={entry.version}",
        "split": "development",
        "clue": entry.clue,
        "verdict": gold.verdict.value,
    }
    digest = sha256_hex(canonical_json(entry.model_dump(mode="json")))
    return Bug(entry.id, entry.id, facts, gold, None, entry.report(), {}, entry, digest)


def _bug_of_folder(folder: Path) -> Bug:
    try:
        document = tomllib.loads((folder / "bug.toml").read_text(encoding="utf-8"))
        gold_document = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
        bug_id = str(document["id"])
        report = next(path for path in sorted(folder.iterdir()) if path.stem == "report")
    except (OSError, ValueError, KeyError, StopIteration) as error:
        raise InputError(
            "bug_invalid",
            _why(error, folder),
            where=str(folder),
            hint="see docs/evaluation.md",
        ) from error
    gold = read_gold(gold_document, str(folder / "gold.json"))
    facts: dict[str, str | None] = {
        name: None if document.get(name) is None else str(document[name])
        for name in ("title", "kind", "language", "origin", "split", "clue")
    }
    inputs = {}
    for role in ROLES:
        given = [path for path in sorted(folder.iterdir()) if path.name.split(".", 1)[0] == role]
        if given:
            inputs[role] = given[0]
    case_id = re.sub(r"[^A-Za-z0-9._-]", "-", bug_id)[:64]
    return Bug(
        bug_id, case_id, {**facts, "verdict": gold.verdict.value}, gold, report, None, inputs, None,
        _folder_hash(folder),
    )  # fmt: skip


def _why(error: Exception, folder: Path) -> str:
    """Return in words why a case folder cannot be used."""
    if isinstance(error, FileNotFoundError):
        found = f"there is no {Path(str(error.filename)).name}"
    elif isinstance(error, StopIteration):
        found = "there is no report"
    elif isinstance(error, KeyError):
        found = f"bug.toml has no {error}"
    else:
        name = "gold.json" if isinstance(error, json.JSONDecodeError) else "bug.toml"
        found = f"{name if isinstance(error, ValueError) else folder.name} cannot be read: {error}"
    return found


def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.parent == folder and path.name.startswith("."):
            continue
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def build_corpus(
    store: CaseStore,
    home: Path,
    corpus: Corpus,
    *,
    cache: Path,
    only: Sequence[str] = (),
    told: Told = lambda _: None,
) -> Built:
    """Import every bug of a corpus that the home does not hold; one that cannot be had is left out and said.

    Args:
        store: where the cases go.
        home: the Viano home.
        corpus: what to build.
        cache: folder of downloaded archives.
        only: bug ids; empty takes all.
        told: progress in words.

    Raises:
        InputError: a bug id of `only` that the corpus does not have, and what `read_bugs` refuses.
    """
    skipped: list[Skipped] = []
    bugs = read_bugs(corpus, skipped)
    for name, _, message in skipped:
        told(f"{name} left out: {message}")
    unknown = set(only) - {bug.bug_id for bug in bugs}
    if unknown:
        raise InputError(
            "unknown_bug", "the corpus has no such bug", where=", ".join(sorted(unknown)), hint="check --only"
        )
    folder = CorpusFolder(home, corpus.name)
    known = {item["bug_id"]: item for item in (folder.built() or {"bugs": []})["bugs"]}
    if not only:
        for gone in sorted(known.keys() - {bug.bug_id for bug in bugs}):
            del known[gone]
            told(f"{gone} is no longer part of the corpus; its case stays")
    imported = present = 0
    for number, bug in enumerate([bug for bug in bugs if not only or bug.bug_id in only], 1):
        try:
            if _is_there(store, bug):
                known[bug.bug_id] = _present(store, bug, known.get(bug.bug_id), cache)
                present += 1
            else:
                known[bug.bug_id] = _import(store, bug, cache)
                _write(folder, corpus.name, known)
                imported += 1
                told(f"{number} of {len(only) or len(bugs)}: {bug.bug_id} imported")
        except (InputError, BlockedError, PackageError) as error:
            skipped.append((bug.bug_id, error.code, error.message))
            told(f"{bug.bug_id} left out: {error}")
    return Built(imported, present, tuple(skipped), _write(folder, corpus.name, known))


def _write(folder: CorpusFolder, name: str, known: dict[str, dict[str, Any]]) -> str:
    bugs = [known[bug_id] for bug_id in sorted(known)]
    digest = content_hash(bugs)
    write_document(
        folder.root / "corpus.json", {"schema": "corpus-v1", "corpus": name, "sha256": digest, "bugs": bugs}
    )
    return digest


def case_inputs(head: Head) -> list[list[str]]:
    """Return role and SHA-256 of every input of a case, sorted: what tells whose case it is."""
    return sorted([path.split("/")[1], sha256] for path, sha256 in head.raw_inputs().items())


def check_inputs(head: Head, bug: Mapping[str, Any]) -> None:
    """Check that a case has the inputs that a bug of a built corpus was imported with.

    Args:
        head: the case.
        bug: the entry of `corpus.json`.

    Raises:
        InputError: `case_not_of_corpus`: gold would judge a case that it says nothing about.
    """
    if case_inputs(head) != bug.get("inputs"):
        raise _foreign(head.case_id)


def _foreign(case_id: str) -> InputError:
    return InputError(
        "case_not_of_corpus",
        "the home's case of this name has other inputs than the known bug",
        where=case_id,
        hint="viano corpus build checks it again; a foreign case needs another bug id or a home of its own",
    )


def _record(bug: Bug, inputs: list[list[str]]) -> dict[str, Any]:
    places = [place.model_dump(mode="json") for place in bug.gold.locations]
    return {
        "bug_id": bug.bug_id, "case_id": bug.case_id, "sha256": bug.sha256, **bug.facts, "locations": places,
        "inputs": inputs,
    }  # fmt: skip


def _is_there(store: CaseStore, bug: Bug) -> bool:
    """Tell whether the home has the case; an import that stopped halfway has to be repeated."""
    if bug.case_id not in store.case_ids():
        return False
    return store.latest(bug.case_id).manifest.lifecycle != Lifecycle.RECEIVED.value


def _present(store: CaseStore, bug: Bug, known: dict[str, Any] | None, cache: Path) -> dict[str, Any]:
    """Return the record of a bug whose case the home has, after checking that it is this bug's.

    A bug whose gold or description was mended keeps its case; one with other inputs does not.
    """
    same = known is not None and known["sha256"] == bug.sha256
    before = None if known is None else known.get("inputs")
    inputs = before if same else None
    if inputs is None:
        with _inputs_of(bug, cache) as files, prepared_inputs(files) as prepared:
            inputs = sorted([item.role, item.described().sha256] for item in prepared)
    if before is not None and inputs != before:
        raise InputError(
            "bug_changed",
            "the case was imported from other inputs than the bug has now",
            where=bug.bug_id,
            hint="give the changed bug another id, or use a fresh home",
        )
    record = _record(bug, inputs)
    check_inputs(store.latest(bug.case_id), record)
    return record


@contextmanager
def _inputs_of(bug: Bug, cache: Path) -> Iterator[list[tuple[Role, Path]]]:
    """Yield the files that the bug's case is imported from."""
    source = archive_for(bug.entry, cache) if bug.entry is not None else bug.inputs.get("source")
    with tempfile.TemporaryDirectory(prefix="viano-corpus-") as folder:
        report = bug.report
        if report is None:
            report = Path(folder) / "report.md"
            report.write_text(bug.report_text or "", encoding="utf-8")
        files = {"report": report, "diagnostics": bug.inputs.get("diagnostics"), "source": source}
        yield [(cast("Role", role), path) for role, path in files.items() if path is not None]


def _import(store: CaseStore, bug: Bug, cache: Path) -> dict[str, Any]:
    with _inputs_of(bug, cache) as inputs:
        files = {str(role): path for role, path in inputs}
        head = import_case(
            store,
            case_id=bug.case_id,
            report=files["report"],
            diagnostics=files.get("diagnostics"),
            source=files.get("source"),
        )
    return _record(bug, case_inputs(head))


def corpus_named(name: str, corpora: Corpora) -> Corpus:
    """Return one corpus.

    Raises:
        InputError: `unknown_corpus`; ConfigurationError: what its file was refused for.
    """
    if name in corpora.refused:
        raise corpora.refused[name]
    if name not in corpora:
        raise InputError(
            "unknown_corpus",
            "there is no such corpus",
            where=name,
            hint=f"known: {', '.join(corpora) or 'none'}; or give --folder",
        )
    return corpora[name]
