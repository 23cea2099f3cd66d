"""Definitions of one file: functions, classes and the like with their qualified names and spans.

Grammars of tree-sitter do the parsing; a file with errors still gives the definitions around them.
Test files in Python are read by indentation instead: they are half of many trees and nothing but
their function spans is needed.
"""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query


class Symbol(NamedTuple):
    """One definition. Bytes are offsets in the file as it lies; `lead` includes decorators."""

    name: str
    qualname: str
    kind: str
    start: int
    end: int
    lead: int
    bases: str
    """Text of the base class list or of the parameters, as far as it is cheap to know."""


FUNCTION_KINDS = frozenset({"function", "method", "macro"})
"""Kinds that are ranked as functions."""

_QUERIES: dict[str, str] = {
    "python": "(function_definition) @function (class_definition) @class (decorated_definition) @lead "
    "(module (expression_statement (assignment left: (identifier)) @variable)) "
    "(class_definition body: (block (expression_statement (assignment left: (identifier)) @variable)))",
    "c": "(function_definition) @function (struct_specifier body: (_)) @class "
    "(enum_specifier body: (_)) @enum (union_specifier body: (_)) @class "
    "(preproc_function_def) @macro (preproc_def) @variable (enumerator) @variable",
    "cpp": "(function_definition) @function (struct_specifier body: (_)) @class "
    "(class_specifier body: (_)) @class (union_specifier body: (_)) @class "
    "(enum_specifier body: (_)) @enum (namespace_definition) @scope "
    "(preproc_function_def) @macro (preproc_def) @variable (enumerator) @variable",
    "java": "(method_declaration) @function (constructor_declaration) @function (class_declaration) @class "
    "(interface_declaration) @class (enum_declaration) @enum (record_declaration) @class",
    "javascript": "(function_declaration) @function (generator_function_declaration) @function "
    "(method_definition) @function (class_declaration) @class "
    "(variable_declarator value: [(arrow_function) (function_expression)]) @function",
    "typescript": "(function_declaration) @function (generator_function_declaration) @function "
    "(method_definition) @function (class_declaration) @class (abstract_class_declaration) @class "
    "(interface_declaration) @class (enum_declaration) @enum (internal_module) @scope "
    "(variable_declarator value: [(arrow_function) (function_expression)]) @function",
    "go": "(function_declaration) @function (method_declaration) @function (type_spec) @class",
    "rust": "(function_item) @function (impl_item) @scope (struct_item) @class (enum_item) @enum "
    "(trait_item) @class (mod_item body: (_)) @scope (macro_definition) @macro",
    "lua": "(function_declaration) @function",
}
_QUERIES["tsx"] = _QUERIES["typescript"]
_SEPARATOR = {"c": "::", "cpp": "::", "rust": "::"}


_MODULES = {
    "python": ("tree_sitter_python", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "lua": ("tree_sitter_lua", "language"),
}


@cache
def _language(name: str) -> Language:
    """Load a grammar when the first file needs it."""
    from tree_sitter import Language  # noqa: PLC0415 - parsing is not needed to read a cached index

    module, entry = _MODULES[name]
    return Language(getattr(importlib.import_module(module), entry)())


@cache
def _tools(name: str) -> tuple[Parser, Query]:
    from tree_sitter import Parser, Query  # noqa: PLC0415

    language = _language(name)
    return Parser(language), Query(language, _QUERIES[name])


class _Found(NamedTuple):
    start: int
    end: int
    kind: str
    name: str
    bases: str


def symbols_of(data: bytes, language: str, *, quick: bool = False) -> list[Symbol]:
    """Return the definitions of a file in the order they stand.

    Args:
        data: the file as it lies.
        language: a name of `languages.CODE`.
        quick: read Python by indentation.
    """
    if language == "sql":
        return _sql(data)
    if language == "python" and quick:
        return _python_by_indentation(data)
    if language not in _QUERIES:
        return []
    from tree_sitter import QueryCursor  # noqa: PLC0415

    parser, query = _tools(language)
    captures = QueryCursor(query).captures(parser.parse(data).root_node)
    leads = {_decorated(node): node.start_byte for node in captures.pop("lead", [])}
    found = [_read(node, kind, data, language) for kind, nodes in captures.items() for node in nodes]
    return _nest([f for f in found if f.name], leads, _SEPARATOR.get(language, "."))


def stumbles(data: bytes, language: str) -> int | None:
    """Return the first line (1-based) that the grammar cannot read, or None when it reads the file whole."""
    if language not in _QUERIES:
        return None
    node = _tools(language)[0].parse(data).root_node
    if not node.has_error:
        return None
    while not node.is_error and not node.is_missing:
        inside = next((c for c in node.children if c.is_error or c.is_missing or c.has_error), None)
        if inside is None:
            break
        node = inside
    return node.start_point[0] + 1


def _decorated(node: Node) -> int:
    """Return where the definition under decorators begins."""
    definition = node.child_by_field_name("definition")
    return node.start_byte if definition is None else definition.start_byte


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


_BASES = {"python": "superclasses", "java": "superclass"}


def _read(node: Node, kind: str, data: bytes, language: str) -> _Found:
    bases = ""
    if language in {"c", "cpp"} and kind == "function":
        name = _declared(node, data)
    elif language == "rust" and kind == "scope" and node.type == "impl_item":
        name = re.sub(r"<.*", "", _text(node.child_by_field_name("type")))
    else:
        named = node.child_by_field_name("left" if kind == "variable" and language == "python" else "name")
        name = _text(named)
        if kind == "class":
            body = node.child_by_field_name("body")
            if named is not None and body is not None:
                bases = data[named.end_byte : min(body.start_byte, named.end_byte + 300)].decode(
                    "utf-8", "replace"
                )
        elif language == "go" and node.type == "method_declaration":
            receiver = re.search(r"(\w+)(?:\[[^\]]*\])?\s*\)", _text(node.child_by_field_name("receiver")))
            name = f"{receiver.group(1)}.{name}" if receiver else name
        elif language == "lua":
            name = name.replace(":", ".")
    return _Found(node.start_byte, node.end_byte, kind, name, bases.strip())


_OPERATOR = re.compile(r"operator\s*(\(\s*\)|[^\s(]+|\w+)")
_C_NAME = re.compile(r"~?\w+$")


def _declared(node: Node, data: bytes) -> str:
    """Return the name of a C or C++ function, qualified as it is written, without template arguments."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in {"function_declarator", "operator_cast"}:
        inside = declarator.child_by_field_name("declarator")
        if inside is None and declarator.type in {"reference_declarator", "parenthesized_declarator"}:
            inside = declarator.named_children[-1] if declarator.named_children else None
        declarator = inside
    if declarator is None:
        return ""
    inner = declarator.child_by_field_name("declarator")
    if declarator.type == "operator_cast" or inner is None:
        return re.sub(r"\s*\(.*", "", _text(declarator), flags=re.DOTALL)
    name = data[inner.start_byte : inner.end_byte].decode("utf-8", "replace")
    if "<" in name and "operator" not in name:
        name = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", name))
    return re.sub(r"\s+", " " if "operator" in name else "", name)


def _nest(found: list[_Found], leads: dict[int, int], separator: str) -> list[Symbol]:
    found.sort(key=lambda f: (f.start, -f.end, f.kind, f.name))
    result: list[Symbol] = []
    stack: list[tuple[int, str, str]] = []
    for item in found:
        while stack and stack[-1][0] <= item.start:
            stack.pop()
        outer = stack[-1][1] if stack else ""
        inside_class = bool(stack) and stack[-1][2] in {"class", "scope", "enum"}
        qualname = f"{outer}{separator}{item.name}" if outer else item.name
        kind = "method" if item.kind == "function" and (inside_class or separator in item.name) else item.kind
        lead = leads.get(item.start, item.start)
        short = item.name.rsplit(separator, 1)[-1]
        if not (result and result[-1].start == item.start and result[-1].qualname == qualname):
            result.append(
                Symbol(short, qualname, kind, item.start, item.end, min(lead, item.start), item.bases)
            )
        stack.append((item.end, qualname, item.kind))
    return result


_PY_DEF = re.compile(rb"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)([^\n]*)", re.MULTILINE)
_PY_LINE = re.compile(rb"^([ \t]*)([^\s#)\]}\"'])", re.MULTILINE)


def _width(indent: bytes) -> int:
    return len(indent.expandtabs(8))


def _python_by_indentation(data: bytes) -> list[Symbol]:
    starts: list[int] = []
    widths: list[int] = []
    for match in _PY_LINE.finditer(data):
        starts.append(match.start())
        widths.append(_width(match.group(1)))
    found: list[_Found] = []
    for match in _PY_DEF.finditer(data):
        own = _width(match.group(1))
        index = bisect_right(starts, match.start())
        while index < len(starts) and widths[index] > own:
            index += 1
        end = starts[index] if index < len(starts) else len(data)
        kind = "class" if match.group(2) == b"class" else "function"
        bases = match.group(4).decode("utf-8", "replace") if kind == "class" else ""
        found.append(
            _Found(match.start() + len(match.group(1)), end, kind, match.group(3).decode(), bases.strip())
        )
    return _nest(found, {}, ".")


_SQL_CREATE = re.compile(
    rb"\bcreate\s+(?:or\s+replace\s+)?(?:definer\s*=\s*\S+\s+)?(?:temporary\s+)?"
    rb"(table|view|procedure|function|trigger|index|type|event)\s+(?:if\s+not\s+exists\s+)?"
    rb"((?:[`\"\[]?\w+[`\"\]]?\s*\.\s*)?[`\"\[]?\w+[`\"\]]?)",
    re.IGNORECASE,
)


def _sql(data: bytes) -> list[Symbol]:
    """`CREATE …` statements of SQL, each up to the next one or its closing semicolon at a line's end."""
    matches = list(_SQL_CREATE.finditer(data))
    result = []
    for index, match in enumerate(matches):
        limit = matches[index + 1].start() if index + 1 < len(matches) else len(data)
        kind = match.group(1).decode().lower()
        stop = data.find(b";", match.end(), limit)
        end = limit if kind in {"procedure", "function", "trigger", "event"} or stop < 0 else stop + 1
        name = re.sub(r"[`\"\[\]\s]", "", match.group(2).decode("utf-8", "replace"))
        shape = "function" if kind in {"procedure", "function", "trigger"} else kind
        result.append(Symbol(name.rsplit(".", 1)[-1], name, shape, match.start(), end, match.start(), ""))
    return result
