"""Reads the TOML settings of the phases; every mistake names the file and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from viano_assets.errors import ConfigurationError

M = TypeVar("M", bound=BaseModel)


def read_toml(path: str | Path, tables: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the tables of a TOML file; a missing file has only empty ones.

    Raises:
        ConfigurationError: `config_unreadable` or `config_unknown_key`.
    """
    file = Path(path)
    known = sorted(tables)
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return {name: {} for name in known}
    except OSError as error:
        raise ConfigurationError("config_unreadable", str(error.strerror), where=str(file)) from error
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            "config_unreadable",
            f"not valid TOML: {error}",
            where=str(file),
            hint="compare with the example file",
        ) from error
    for name, value in sorted(data.items()):
        if name not in known or not isinstance(value, dict):
            raise ConfigurationError(
                "config_unknown_key",
                f"{name} is not a known table",
                where=str(file),
                hint=f"known tables: {', '.join(known)}",
            )
    return {name: data.get(name, {}) for name in known}


def settings(model: type[M], values: dict[str, Any], path: str | Path, table: str) -> M:
    """Validate one table.

    Raises:
        ConfigurationError: `config_unknown_key` or `config_invalid_value`, naming file and key.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join([table, *(str(part) for part in detail["loc"])])
        unknown = detail["type"] == "extra_forbidden"
        raise ConfigurationError(
            "config_unknown_key" if unknown else "config_invalid_value",
            f"{key}: {'no such setting' if unknown else detail['msg']}",
            where=str(path),
            hint="see the example file beside it for every setting and its default",
        ) from error
