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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from viano_assets.canonical import canonical_json, sha256_hex
from viano_assets.case.intake import import_case
from viano_assets.case.ports import CaseStore
from viano_assets.data_files import CONFIG
from viano_assets.errors import BlockedError, ConfigurationError, InputError
from viano_assets.evaluation.gold import Gold, read_gold
from viano_assets.evaluation.recipes import RecipeEntry, archive_for, read_entries
from viano_assets.evaluation.stored import CorpusFolder, check_corpus_name, content_hash, write_document

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


def find_corpora(*folders: Path) -> dict[str, Corpus]:
    """Return the corpora of `config/corpora` and of further folders, by name; later ones win."""
    found = {}
    for folder in (CONFIG / "corpora", *folders):
        for path in sorted(folder.glob("*.toml")) if folder.is_dir() else []:
            found[path.stem] = _read_spec(path)
    return dict(sorted(found.items()))


def _read_spec(path: Path) -> Corpus:
    try:
        spec = CorpusSpec.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError, OSError) as error:
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


def read_bugs(corpus: Corpus) -> list[Bug]:
    """Return the bugs of a corpus, ordered by id.

    Raises:
        InputError: `bug_invalid`, `gold_invalid`, `recipe_invalid`, naming the file.
    """
    if corpus.spec.kind == "recipe":
        entries = read_entries(corpus.base / str(corpus.spec.entries))
        bugs = [_bug_of_entry(entry) for entry in entries]
    else:
        folder = corpus.base / str(corpus.spec.folder)
        bugs = [_bug_of_folder(path.parent) for path in sorted(folder.glob("*/bug.toml"))]
    if not bugs:
        raise InputError(
            "corpus_empty", "there is no known bug", where=corpus.name, hint="see docs/evaluation.md"
        )
    return sorted(bugs, key=lambda bug: bug.bug_id)


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
            f"{type(error).__name__}: {error}" if str(error) else "there is no report",
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


def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
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
    bugs = read_bugs(corpus)
    unknown = set(only) - {bug.bug_id for bug in bugs}
    if unknown:
        raise InputError(
            "unknown_bug", "the corpus has no such bug", where=", ".join(sorted(unknown)), hint="check --only"
        )
    folder = CorpusFolder(home, corpus.name)
    known = {item["bug_id"]: item for item in (folder.built() or {"bugs": []})["bugs"]}
    imported = present = 0
    skipped: list[tuple[str, str, str]] = []
    for number, bug in enumerate([bug for bug in bugs if not only or bug.bug_id in only], 1):
        try:
            if bug.case_id in store.case_ids():
                _check_same(known.get(bug.bug_id), bug)
                known[bug.bug_id] = _record(bug)
                present += 1
            else:
                _import(store, bug, cache)
                known[bug.bug_id] = _record(bug)
                _write(folder, corpus.name, known)
                imported += 1
                told(f"{number} of {len(only) or len(bugs)}: {bug.bug_id} imported")
        except (InputError, BlockedError) as error:
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


def _record(bug: Bug) -> dict[str, Any]:
    places = [place.model_dump(mode="json") for place in bug.gold.locations]
    return {
        "bug_id": bug.bug_id, "case_id": bug.case_id, "sha256": bug.sha256, **bug.facts, "locations": places,
    }  # fmt: skip


def _check_same(known: dict[str, Any] | None, bug: Bug) -> None:
    if known is not None and known["sha256"] != bug.sha256:
        raise InputError(
            "bug_changed",
            "the case was imported from another version of the bug",
            where=bug.bug_id,
            hint="use a fresh home for the changed corpus",
        )


def _import(store: CaseStore, bug: Bug, cache: Path) -> None:
    source = archive_for(bug.entry, cache) if bug.entry is not None else bug.inputs.get("source")
    with tempfile.TemporaryDirectory(prefix="viano-corpus-") as folder:
        report = bug.report
        if report is None:
            report = Path(folder) / "report.md"
            report.write_text(bug.report_text or "", encoding="utf-8")
        import_case(
            store,
            case_id=bug.case_id,
            report=report,
            diagnostics=bug.inputs.get("diagnostics"),
            source=source,
        )


def corpus_named(name: str, corpora: dict[str, Corpus]) -> Corpus:
    """Return one corpus.

    Raises:
        InputError: `unknown_corpus`.
    """
    if name not in corpora:
        raise InputError(
            "unknown_corpus",
            "there is no such corpus",
            where=name,
            hint=f"known: {', '.join(corpora) or 'none'}; or give --folder",
        )
    return corpora[name]
