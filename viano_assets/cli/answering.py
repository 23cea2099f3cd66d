"""Who answered a case: the providers whose recorded answers a revision is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from viano_assets.errors import ConfigurationError
from viano_assets.package.model import Checkpoint, Head
from viano_assets.phases.common import read_json
from viano_assets.phases.protocols import Store
from viano_assets.phases.rounds import model_rounds


def answered_by(store: Store, head: Head, revision: int) -> list[dict[str, Any]]:
    """Return `{provider, model, phases}` of the providers, in order of their first answer."""
    found: dict[tuple[str, str], list[str]] = {}
    for checkpoint in model_rounds(head, revision):
        if checkpoint.detail.get("outcome") == "answered":
            attempt = _last_attempt(store, head, checkpoint)
            phases = found.setdefault((attempt["provider"], attempt["requested_model"]), [])
            if checkpoint.phase is not None and checkpoint.phase not in phases:
                phases.append(checkpoint.phase)
    return [{"provider": p, "model": model, "phases": phases} for (p, model), phases in found.items()]


def provider_to_name(home: Path, store: Store, head: Head) -> str | None:
    """Return the provider that the revision asked last when a run without --provider would ask another."""
    from resources.llm.config import LLMConfig  # noqa: PLC0415  # keeps `viano case list` fast

    rounds = model_rounds(head, head.revision)
    if not rounds:
        return None
    try:
        settings = LLMConfig.discover(home)
    except ConfigurationError:
        return None
    provider = str(_last_attempt(store, head, rounds[-1])["provider"])
    known = provider in settings.provider_names() and provider not in settings.chain()
    return provider if known else None


def who(answers: Sequence[dict[str, Any]]) -> str:
    """Return the providers as words."""
    return ", ".join(dict.fromkeys(answer["provider"] for answer in answers))


def others_note(answers: Sequence[dict[str, Any]], asked: Sequence[str], case_id: str) -> str | None:
    """Say that answers came from providers other than those a run would ask; None when none did.

    What is recorded is never asked for again (docs/models.md), so another model needs a revision of its own.
    """
    others = [answer for answer in answers if answer["provider"] not in asked]
    if not others:
        return None
    phases = ", ".join(dict.fromkeys(phase for answer in others for phase in answer["phases"]))
    return (
        f"{phases} of {case_id} was answered by {who(others)} before; {', '.join(asked)} was not asked. "
        f"To ask in a new revision: viano case reopen {case_id} --again && viano run {case_id}"
    )


def _last_attempt(store: Store, head: Head, checkpoint: Checkpoint) -> dict[str, Any]:
    attempt: dict[str, Any] = read_json(store, head, checkpoint.detail["path"])["attempts"][-1]
    return attempt
