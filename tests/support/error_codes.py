"""Every error the product raises on purpose, read from its source.

`python -m tests.support.error_codes` writes docs/errors.md anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from viano_assets import errors

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "errors.md"

HEAD = """# Error codes

Every error has a stable code, says what happened and where, and gives one remedy. The command line prints
it in two lines on standard error and ends with the status below; in Dagster it is the failure's metadata.
Outcomes of a phase that are not errors (`BLOCKED`, `RETRY_PENDING`, …) have codes of their own:
docs/models.md, docs/investigation.md, docs/diagnosis.md. This page is made from the source; a test keeps it
complete.

| code | who can act | exit | what happened |
| --- | --- | --- | --- |
"""

WHO = {
    "InputError": "the user",
    "ConfigurationError": "the operator",
    "BlockedError": "wait or resume",
    "BusyError": "wait or resume",
    "StaleHeadError": "run again",
    "StorageError": "the operator",
    "PackageError": "restore the package",
    "NewerFormatError": "install a newer release",
    "ContractError": "restore the package",
    "DefectError": "report a defect",
    "VianoError": "see the hint",
}


class Raised(NamedTuple):
    """One code with the class that carries it and its message, variable parts as `…`."""

    code: str
    kind: str
    message: str


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return "…"


def raised() -> list[Raised]:
    """Return the codes in order, each once."""
    found: dict[str, Raised] = {}
    for folder in ("viano_assets", "resources"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for item in _in(ast.parse(path.read_text(encoding="utf-8"))):
                found.setdefault(item.code, item)
    return sorted(found.values())


def _in(tree: ast.AST) -> Iterator[Raised]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        code = node.args[0].value
        if name in WHO and isinstance(code, str):
            yield Raised(code, name, _text(node.args[1]) if len(node.args) > 1 else "")


def page() -> str:
    """Return the content of docs/errors.md."""
    lines = []
    for item in raised():
        status = getattr(errors, item.kind).exit_status
        message = item.message.replace("|", "\\|") or "…"
        lines.append(f"| `{item.code}` | {WHO[item.kind]} | {status} | {message} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
