"""Whether the raw inputs still are those that a phase has read.

The raw path to hash set of the head is compared with the one bound in a phase's context. Files outside the
package are not consulted, and a name alone proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from viano_assets.errors import InputError
from viano_assets.package.model import Head


class Difference(NamedTuple):
    """One raw input that is not as it was bound."""

    path: str
    change: Literal["added", "removed", "changed"]


def differences(bound: Mapping[str, str], now: Mapping[str, str]) -> list[Difference]:
    """Return every difference between two path to SHA-256 sets, ordered by path."""
    found: list[Difference] = []
    for path in sorted(bound.keys() | now.keys()):
        if path not in bound:
            found.append(Difference(path, "added"))
        elif path not in now:
            found.append(Difference(path, "removed"))
        elif bound[path] != now[path]:
            found.append(Difference(path, "changed"))
    return found


def check_fresh(head: Head, bound: Mapping[str, str]) -> None:
    """Let a phase pass only when its raw inputs are those of the head.

    Raises:
        InputError: `stale_input`, naming the first file that differs.
    """
    found = differences(bound, head.raw_inputs())
    if found:
        raise InputError(
            "stale_input",
            f"a raw input was {found[0].change} after this analysis revision had read it",
            where=f"case {head.case_id}, generation {head.generation}, {found[0].path}",
            hint="reopen the case, so that a new analysis revision reads it",
        )
