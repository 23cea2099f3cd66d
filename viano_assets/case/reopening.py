"""New information on a case, and new analysis revisions without any.

A reopened case starts its next analysis revision in one generation: the added inputs, the new canonical
case, cleared pointers. Everything of the old revisions stays where it is and readable.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from viano_assets.case.archives import is_archive_name
from viano_assets.case.assembler import CASE_POINTER, CaseAssembler, case_path, dump
from viano_assets.case.inputs import Role
from viano_assets.case.intake import ProgressSink, prepared_inputs
from viano_assets.case.lifecycle import Lifecycle
from viano_assets.case.ports import CaseStore
from viano_assets.case.view import KEY_POINTER, pins_of
from viano_assets.errors import InputError
from viano_assets.package.model import Change, Head

_REMARKS = frozenset({".md", ".markdown", ".txt", ".text", ".eml", ".rst"})


def reopen_case(
    store: CaseStore,
    case_id: str,
    *,
    comment: str | None = None,
    attachments: Sequence[Path] = (),
    progress: ProgressSink | None = None,
) -> Head:
    """Start the next analysis revision with new information.

    A comment and attached text files (Markdown, plain text, mail) are read as remarks of a person; every
    other attachment joins the diagnostics.

    Args:
        store: where the case is.
        case_id: the case.
        comment: what a person adds in words.
        attachments: files or directories.
        progress: told about long steps.

    Raises:
        InputError: `nothing_new` without comment and attachment, and what an import refuses.
    """
    if not attachments and not (comment or "").strip():
        raise InputError(
            "nothing_new",
            "there is nothing to reopen the case with",
            where=case_id,
            hint="give --comment or --attach; for another provider, prompt or policy without new information:"
            f" viano case reopen {case_id} --again",
        )
    head = store.latest(case_id)
    with tempfile.TemporaryDirectory(prefix="viano-comment-") as folder:
        named: list[tuple[Role, Path]] = []
        if comment and comment.strip():
            path = Path(folder) / "comment.md"
            path.write_text(comment.strip() + "\n", encoding="utf-8")
            named.append(("report", path))
        named += [(_attached_role(path), path) for path in attachments]
        return _next(store, head, named, reason="reopened", progress=progress)


def new_revision(
    store: CaseStore, case_id: str, *, reason: str, prior_generations: str | None = None
) -> Head:
    """Start the next analysis revision of unchanged inputs, for another policy, prompt or provider.

    Args:
        store: where the case is.
        case_id: the case.
        reason: why, for the history.
        prior_generations: `include` or `exclude` for this revision; None leaves it to the configuration.
    """
    head = store.latest(case_id)
    return _next(store, head, [], reason=reason, progress=None, prior_generations=prior_generations)


def resume_case(store: CaseStore, case_id: str) -> Head:
    """Lift a block or a deferral; a case on which none lies is returned unchanged."""
    head = store.latest(case_id)
    overlay = head.manifest.overlay
    if overlay is None:
        return head
    return store.commit(
        head,
        Change(
            event="case_resumed",
            overlay=None,
            routing=None,
            detail={"lifted": overlay.kind, "code": overlay.code, "phase": overlay.phase},
        ),
    )


def _attached_role(path: Path) -> Role:
    remark = path.suffix.lower() in _REMARKS and not is_archive_name(path.name) and not path.is_dir()
    return "report" if remark else "diagnostics"


def _next(
    store: CaseStore,
    head: Head,
    named: Sequence[tuple[Role, Path]],
    *,
    reason: str,
    progress: ProgressSink | None,
    prior_generations: str | None = None,
) -> Head:
    revision = head.revision + 1
    encoding = pins_of(store, head).name_encoding
    with prepared_inputs(named, added_in=revision, name_encoding=encoding, progress=progress) as added:
        document = CaseAssembler(store).document(head, revision=revision, added=added)
        raw = {item.package_path: item.path for item in added}
        pointers: dict[str, str | None] = dict.fromkeys(head.manifest.pointers)
        pointers |= {KEY_POINTER: head.pointer(KEY_POINTER), CASE_POINTER: case_path(revision)}
        return store.commit(
            head,
            Change(
                event="case_reopened",
                put={**raw, case_path(revision): dump(document)},
                raw=frozenset(raw),
                pointers=pointers,
                lifecycle=Lifecycle.ASSEMBLED.value,
                overlay=None,
                routing=None,
                revision=revision,
                detail={
                    "reason": reason,
                    "inputs": sorted(raw),
                    "sources": len(document.sources),
                    **({} if prior_generations is None else {"prior_generations": prior_generations}),
                },
            ),
        )
