"""The contract of the source tools: arguments, their limits, and the specifications shown to a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from viano_assets.phases.protocols import ToolSpec

BLAME_LINES = 100
"""Most lines whose origin is asked for at once."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SearchArguments(_Arguments):
    """A literal or a linear-time regular expression over the whole tree."""

    pattern: str = Field(min_length=1, max_length=2000)
    regex: bool = False
    ignore_case: bool = False
    globs: list[str] = Field(default_factory=list, max_length=20)
    context: int = Field(default=2, ge=0, le=10)
    limit: int = Field(default=30, ge=1, le=200)


class RankArguments(_Arguments):
    """Free text, for example the whole report; `focus` are further words, `names` are found in data.

    A name is a table, column, key or script that the case's data holds; it leads to the code that writes it.
    """

    text: str = Field(min_length=1, max_length=60_000)
    focus: str = Field(default="", max_length=4000)
    names: list[Annotated[str, Field(min_length=2, max_length=200)]] = Field(
        default_factory=list, max_length=50
    )
    limit: int = Field(default=10, ge=1, le=50)


class ReadArguments(_Arguments):
    """A file with a line span, or a function of it by its qualified name."""

    path: str = Field(min_length=1, max_length=1000)
    line_start: int | None = Field(default=None, ge=1)
    line_end: int | None = Field(default=None, ge=1)
    symbol: str | None = Field(default=None, max_length=300)

    @model_validator(mode="after")
    def _span(self) -> ReadArguments:
        if self.line_start is not None and self.line_end is not None and self.line_end < self.line_start:
            msg = "line_end is before line_start"
            raise ValueError(msg)
        if self.symbol is not None and (self.line_start is not None or self.line_end is not None):
            msg = "give a symbol or lines, not both"
            raise ValueError(msg)
        return self


class NameArguments(_Arguments):
    """A short or qualified name."""

    name: str = Field(min_length=1, max_length=300)
    limit: int = Field(default=20, ge=1, le=100)


class ReferenceArguments(NameArguments):
    """A name and the files to look in."""

    globs: list[str] = Field(default_factory=list, max_length=20)


class OutlineArguments(_Arguments):
    """One file."""

    path: str = Field(min_length=1, max_length=1000)


class ConstantArguments(_Arguments):
    """A value as it would be written in decimal or as text."""

    value: str = Field(min_length=1, max_length=200)
    limit: int = Field(default=20, ge=1, le=100)


class HistoryArguments(_Arguments):
    """A string whose number of occurrences a commit changed, or with `blame` the lines of a file.

    Lines count as they stood at the reported revision.
    """

    mode: Literal["search", "blame"] = "search"
    text: str | None = Field(default=None, min_length=2, max_length=300)
    path: str | None = Field(default=None, max_length=1000)
    line_start: int | None = Field(default=None, ge=1)
    line_end: int | None = Field(default=None, ge=1)
    limit: int = Field(default=10, ge=1, le=50)

    @model_validator(mode="after")
    def _asked(self) -> HistoryArguments:
        lines = self.line_start is not None or self.line_end is not None
        if self.mode == "search" and (self.text is None or lines):
            msg = "search takes a text and no lines"
            raise ValueError(msg)
        if self.mode == "blame" and (self.path is None or self.line_start is None or self.text is not None):
            msg = "blame takes a path and a line_start, and no text"
            raise ValueError(msg)
        first, last = self.line_start or 1, self.line_end or self.line_start or 1
        if not first <= last < first + BLAME_LINES:
            msg = f"line_end is before line_start, or more than {BLAME_LINES} lines are asked for"
            raise ValueError(msg)
        return self


_MODELS: dict[str, type[_Arguments]] = {
    "source.search": SearchArguments,
    "source.rank": RankArguments,
    "source.read": ReadArguments,
    "source.symbol": NameArguments,
    "source.outline": OutlineArguments,
    "source.references": ReferenceArguments,
    "source.constant": ConstantArguments,
    "source.history": HistoryArguments,
}

_PURPOSE = {
    "source.search": ("Find a literal or a linear-time regular expression in every file of the source.", 1),
    "source.rank": (
        "Rank files and functions for a free text such as the report, with the signals that led there.",
        2,
    ),
    "source.read": ("Read exact lines of a file, by line span or by function.", 1),
    "source.symbol": ("Find the definitions of a name, and where it is used.", 1),
    "source.outline": ("List the definitions of one file with their line spans.", 1),
    "source.references": ("Find the textual uses of a name with the function around each.", 1),
    "source.constant": ("Find the names that stand for a value (constants, enumerators, macros).", 1),
    "source.history": (
        "Commits that added or removed a text, or that lines come from (blame); when the archive has them.",
        2,
    ),
}


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for field in schema["properties"].values():
        field.pop("title", None)
    return schema


SOURCE_TOOL_SPECS: tuple[ToolSpec, ...] = tuple(
    ToolSpec(name, _PURPOSE[name][0], _schema(model), _PURPOSE[name][1]) for name, model in _MODELS.items()
)
"""Every source tool in stable order. The costs are defaults; policy may pin others."""


def parse(tool: str, arguments: Mapping[str, Any]) -> _Arguments:
    """Return the validated arguments.

    Raises:
        KeyError: no source tool of that name.
        ValidationError: arguments outside the contract.
    """
    return _MODELS[tool].model_validate(dict(arguments))


def check(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Return why the arguments are outside the tool's contract, or None."""
    if tool not in _MODELS:
        return f"unknown tool {tool}"
    try:
        found = parse(tool, arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(p) for p in first["loc"]) or "arguments"
        return f"{place}: {first['msg']}"
    for value in (getattr(found, "path", None), *getattr(found, "globs", ())):
        if value is not None and not is_inside(value):
            return f"path leaves the source: {value[:80]!r}"
    return None


def is_inside(path: str) -> bool:
    """Say whether a POSIX path or glob stays below the root."""
    pure = PurePosixPath(path.removeprefix("!"))
    return not pure.is_absolute() and ".." not in pure.parts and "\\" not in path and "\x00" not in path
