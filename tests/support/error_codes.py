"""Every error the product raises on purpose, read from its source.

`python -m tests.support.error_codes` writes docs/errors.md anew.
"""

from __future__ import annotations

import ast
import re
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


TOLD = {"usage": "InputError", "interrupted": "BlockedError", "defect": "DefectError"}
"""Codes that the command line prints itself, with the class whose status it ends with."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
FOLDERS = ("viano_assets", "resources")


class Forwarder(NamedTuple):
    """A function that makes an error of a code it is given: `before` and `after` are put around the code."""

    kind: str
    parameters: tuple[str, ...]
    code: str
    before: str
    after: str
    default: ast.expr | None


class Source:
    """One module and what can be known of a code from its text alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.tables = {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self.calls = list(_calls(self.tree, None))

    def values(self, node: ast.expr | None, within: Function | None) -> list[str] | None:
        """Return the texts an expression may be, or None when that cannot be read off."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.IfExp(body=body, orelse=orelse):
                return _joined([self.values(body, within), self.values(orelse, within)])
            case ast.Name(id=name) if within is not None and name not in _parameters(within):
                return _joined([self.values(value, within) for value in _assigned(within, name)])
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(at))) if within:
                rows = [row for value in _assigned(within, name) for row in self._rows(value)]
                return _joined([self.values(row.elts[at], within) for row in rows])
            case _:
                return None

    def _rows(self, value: ast.expr) -> list[ast.Tuple]:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            owner = value.func.value
            if isinstance(owner, ast.Name) and owner.id in self.tables:
                return [row for row in self.tables[owner.id].values if isinstance(row, ast.Tuple)]
        return []


def _calls(node: ast.AST, within: Function | None) -> Iterator[tuple[ast.Call, Function | None]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, within
        yield from _calls(child, child if isinstance(child, Function) else within)


def _joined(parts: list[list[str] | None]) -> list[str] | None:
    known = [part for part in parts if part is not None]
    return [text for part in known for text in part] if known and len(known) == len(parts) else None


def _parameters(function: Function) -> list[str]:
    return [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]


def _assigned(function: Function, name: str) -> list[ast.expr]:
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]


def _default(function: Function, name: str) -> ast.expr | None:
    for arguments, defaults in (
        (function.args.args[len(function.args.args) - len(function.args.defaults) :], function.args.defaults),
        (function.args.kwonlyargs, function.args.kw_defaults),
    ):
        for argument, default in zip(arguments, defaults, strict=True):
            if argument.arg == name:
                return default
    return None


def _argument(call: ast.Call, parameters: tuple[str, ...], name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    at = parameters.index(name) if name in parameters else len(call.args)
    return call.args[at] if at < len(call.args) else None


def _text(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return "…"


class Reader:
    """Finds the codes of all modules, also those that pass through functions on their way to the error."""

    def __init__(self) -> None:
        paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
        self.sources = [Source(path) for path in paths]
        bases = ("code", "message", "where", "hint")
        self._known: dict[tuple[Path | None, str], Forwarder] = {
            (None, name): Forwarder(name, bases, "code", "", "", None) for name in WHO
        }
        for source in self.sources:
            for node in ast.walk(source.tree):
                if isinstance(node, ast.ClassDef) and node.name not in WHO:
                    parents = [
                        base.id for base in node.bases if isinstance(base, ast.Name) and base.id in WHO
                    ]
                    if parents:
                        self._known[None, node.name] = Forwarder(parents[0], bases, "code", "", "", None)
        while self._learned():
            pass

    def _forwarder(self, source: Source, call: ast.Call) -> Forwarder | None:
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        return self._known.get((source.path if name.startswith("_") else None, name))

    def _uses(self) -> Iterator[tuple[Source, ast.Call, Function | None, Forwarder]]:
        for source in self.sources:
            for call, within in source.calls:
                forwarder = self._forwarder(source, call)
                if forwarder is not None:
                    yield source, call, within, forwarder

    def _learned(self) -> bool:
        before = len(self._known)
        for source, call, within, known in list(self._uses()):
            node = _argument(call, known.parameters, known.code)
            passed = _passed(node, within)
            if within is None or passed is None:
                continue
            name, before_it, after_it = passed
            key = (source.path if within.name.startswith("_") else None, within.name)
            parameters = tuple(p for p in _parameters(within) if p != "self")
            self._known.setdefault(
                key,
                Forwarder(
                    known.kind,
                    parameters,
                    name,
                    known.before + before_it,
                    after_it + known.after,
                    _default(within, name),
                ),
            )
        return len(self._known) > before

    def raised(self) -> Iterator[Raised]:
        """Yield every code with one message."""
        for source, call, within, known in self._uses():
            node = _argument(call, known.parameters, known.code) or known.default
            codes = source.values(node, within) or []
            message = _argument(call, known.parameters, "message")
            texts = source.values(message, within) or []
            if len(texts) != len(codes):
                texts = [_text(message)] * len(codes)
            for code, text in zip(codes, texts, strict=True):
                yield Raised(known.before + code + known.after, known.kind, text)

    def unread(self) -> list[str]:
        """Return the places whose code the text does not tell, as `path: expression`."""
        return [
            f"{source.path.relative_to(ROOT)}: {ast.unparse(node)}"
            for source, call, within, known in self._uses()
            if (node := _argument(call, known.parameters, known.code)) is not None
            and _passed(node, within) is None
            and source.values(node, within) is None
        ]


def _passed(node: ast.expr | None, within: Function | None) -> tuple[str, str, str] | None:
    """Return the parameter of `within` that makes the code, with the texts around it."""
    if within is None:
        return None
    parameters = _parameters(within)
    match node:
        case ast.Name(id=name) if name in parameters:
            return name, "", ""
        case ast.JoinedStr(values=parts):
            held = [p for p in parts if isinstance(p, ast.FormattedValue)]
            if len(held) == 1 and isinstance(held[0].value, ast.Name) and held[0].value.id in parameters:
                at = parts.index(held[0])
                return held[0].value.id, "".join(map(_text, parts[:at])), "".join(map(_text, parts[at + 1 :]))
    return None


def _told(source: Source) -> Iterator[Raised]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for code, message in re.findall(r"error\[(\w+)\]: ?(.*)", node.value):
                yield Raised(code, TOLD[code], message.strip() or "…")


def raised() -> list[Raised]:
    """Return the codes in order, each once."""
    reader = Reader()
    found: dict[str, Raised] = {}
    for item in (*reader.raised(), *(told for source in reader.sources for told in _told(source))):
        if item.code not in found or found[item.code].message == "…":
            found[item.code] = item
    return sorted(found.values())


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
