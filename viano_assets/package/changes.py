"""What a change may do to a package, whichever store carries it out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from viano_assets.canonical import canonical_json
from viano_assets.errors import ContractError
from viano_assets.package.limits import PackageLimits
from viano_assets.package.model import KEEP, Change, Manifest
from viano_assets.package.names import NameIndex, name_problem


def _refuse(code: str, message: str, where: str) -> ContractError:
    return ContractError(code, message, where=where)


def check_paths(change: Change, names: NameIndex, raw_of: Mapping[str, bool], where: str) -> None:
    """Check every path of a change against the path grammar and the files that are there.

    Args:
        change: the change.
        names: the live paths.
        raw_of: live path to whether it is a raw input.
        where: the case, for the error.

    Raises:
        ContractError: `invalid_path`, `colliding_path`, `raw_not_put`, `raw_input_changed` (an artifact
            would replace a raw input) or `artifact_as_raw` (the other way round).
    """
    if not change.raw <= change.put.keys():
        raise _refuse("raw_not_put", "a raw path has no content", where)
    fresh = NameIndex()
    for path in change.put:
        problem = name_problem(path)
        if problem is not None:
            raise _refuse("invalid_path", f"{path!r} has {problem}", where)
        collision = names.problem(path) or fresh.problem(path)
        if collision is not None:
            raise _refuse("colliding_path", f"{path!r} would be {collision}", where)
        fresh.add(path)
        was_raw = raw_of.get(path)
        if was_raw is True and path not in change.raw:
            raise _refuse("raw_input_changed", f"an artifact would replace the raw input {path!r}", where)
        if was_raw is False and path in change.raw:
            raise _refuse("artifact_as_raw", f"a raw input would replace the artifact {path!r}", where)


def first_manifest(case_id: str, package_id: str, change: Change) -> Manifest:
    """Return the manifest of generation 1, before `next_manifest` is applied to it."""
    if change.lifecycle == KEEP:
        raise _refuse("missing_lifecycle", "the first generation needs a lifecycle state", case_id)
    return Manifest(case_id, package_id, 0, 1, change.lifecycle, {})


def next_manifest(old: Manifest, change: Change, live: Collection[str], limits: PackageLimits) -> Manifest:
    """Return the manifest that `change` leads to; `live` are the paths after it, which pointers may name.

    Raises:
        ContractError: `invalid_change`, `dangling_pointer`, `revision_step`, `detail_too_big` or `not_json`.
    """
    where = f"{old.case_id} generation {old.generation + 1}"
    if not change.event or change.phase == "" or not change.lifecycle or change.routing == "":
        raise _refuse("invalid_change", "event, phase, lifecycle and routing are never empty text", where)
    if len(canonical_json(dict(change.detail))) > limits.detail_bytes:
        raise _refuse("detail_too_big", f"detail is larger than {limits.detail_bytes} bytes", where)
    revision = old.analysis_revision if change.revision == KEEP else change.revision
    if not isinstance(revision, int) or revision not in {old.analysis_revision, old.analysis_revision + 1}:
        raise _refuse("revision_step", f"revision {old.analysis_revision} cannot become {revision}", where)
    pointers = dict(old.pointers)
    for name, path in change.pointers.items():
        if path is None:
            pointers.pop(name, None)
        elif path in live and name:
            pointers[name] = path
        else:
            raise _refuse(
                "dangling_pointer", f"pointer {name!r} would name {path!r}, which is not there", where
            )
    if old.generation >= limits.generations:
        raise _refuse(
            "too_many_generations", f"a package holds at most {limits.generations} generations", where
        )
    return Manifest(
        case_id=old.case_id,
        package_id=old.package_id,
        generation=old.generation + 1,
        analysis_revision=revision,
        lifecycle=old.lifecycle if change.lifecycle == KEEP else change.lifecycle,
        pointers=dict(sorted(pointers.items())),
        overlay=old.overlay if isinstance(change.overlay, str) else change.overlay,
        routing=old.routing if change.routing == KEEP else change.routing,
    )


def check_totals(files: int, total: int, limits: PackageLimits, where: str) -> None:
    """Check the number of live files and their bytes.

    Raises:
        ContractError: `package_too_big`.
    """
    if files > limits.files or total > limits.total_bytes:
        raise ContractError(
            "package_too_big",
            f"{files} files with {total} bytes exceed {limits.files} files or {limits.total_bytes} bytes",
            where=where,
            hint="leave out what the diagnosis does not need",
        )


def content(value: bytes | Path) -> bytes:
    """Return the bytes of a put value at once (for stores that keep everything in memory)."""
    return value if isinstance(value, bytes) else value.read_bytes()
