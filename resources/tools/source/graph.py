"""Who calls whom in a tree, by name: textual, so several definitions of a name share the call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source.parse import FUNCTION_KINDS
from resources.tools.source.reader import SourceIndex, SymbolRow

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats, Ints

MAX_DEFINITIONS = 25
"""A name with more definitions says nothing about what is called."""
CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor", "new", "New", "__post_init__"})


class CallGraph:
    """Weighted edges between units. The weight of a call is shared by what its name can mean."""

    def __init__(self, index: SourceIndex, product_files: Floats) -> None:
        self._index = index
        self._product = product_files
        self.size = len(index.units)

    @cached_property
    def constructor(self) -> dict[int, int]:
        """The unit of the constructor of each class symbol that has one."""
        result: dict[int, int] = {}
        classes: list[SymbolRow] = []
        for s in self._index.symbols:
            while classes and (classes[-1].file != s.file or classes[-1].end <= s.start):
                classes.pop()
            if s.kind == "class":
                classes.append(s)
            elif classes and s.kind in FUNCTION_KINDS and self._constructs(s, classes[-1]):
                result.setdefault(classes[-1].id, s.unit)
        return result

    @staticmethod
    def _constructs(method: SymbolRow, owner: SymbolRow) -> bool:
        return method.name in CONSTRUCTORS or method.name == owner.name

    @cached_property
    def _targets(self) -> dict[str, list[tuple[int, int]]]:
        """For each callable name the units (with their files) it can mean."""
        found: dict[str, dict[int, int]] = {}
        for s in self._index.symbols:
            if self._product[s.file] <= 0 or s.kind not in {"function", "method", "class", "macro"}:
                continue
            if self._index.units[s.unit].kind == "stub":
                continue
            names = found.setdefault(s.name, {})
            names[s.unit] = s.file
            if s.kind == "class" and s.id in self.constructor:
                names[self.constructor[s.id]] = s.file
        return {n: sorted(t.items()) for n, t in found.items() if len(t) <= MAX_DEFINITIONS}

    @cached_property
    def edges(self) -> tuple[Ints, Ints, Floats]:
        """Return callers, callees and weights of all resolved calls."""
        units, callees, names = self._index.call_edges
        unit_file = self._index.unit_file
        sources: list[int] = []
        targets: list[int] = []
        weights: list[float] = []
        known = self._targets
        resolved = [known.get(n, []) for n in names]
        for unit, callee in zip(units.tolist(), callees.tolist(), strict=True):
            options = resolved[callee]
            if not options:
                continue
            own = unit_file[unit]
            near = [t for t, f in options if f == own and t != unit]
            for target, _ in options if not near else [(t, own) for t in near]:
                if target != unit:
                    sources.append(unit)
                    targets.append(target)
                    weights.append(1.0 / (len(near) or len(options)))
        for owner, method, share in self._contained():
            sources.append(owner)
            targets.append(method)
            weights.append(share)
        return (
            np.array(sources, dtype=np.int32),
            np.array(targets, dtype=np.int32),
            np.array(weights, dtype=np.float64),
        )

    def _contained(self) -> Iterator[tuple[int, int, float]]:
        """Yield edges from a class to its methods: whoever holds an object can reach them."""
        methods: dict[int, dict[int, None]] = {}
        classes: list[SymbolRow] = []
        for s in self._index.symbols:
            while classes and (classes[-1].file != s.file or classes[-1].end <= s.start):
                classes.pop()
            if s.kind == "class" and self._product[s.file] > 0:
                classes.append(s)
            elif classes and s.kind == "method":
                methods.setdefault(classes[-1].unit, {})[s.unit] = None
        for owner, found in methods.items():
            for unit in found:
                yield owner, unit, 1.0 / math.sqrt(len(found))

    @cached_property
    def callers(self) -> Floats:
        """How many callers each unit has, shared calls counted by their share."""
        _, targets, weights = self.edges
        return np.bincount(targets, weights=weights, minlength=self.size).astype(np.float64)

    @cached_property
    def product_callers(self) -> Floats:
        """How many callers in product code each unit has, shared calls counted by their share.

        A class is no caller of its methods: it holds or declares them.
        """
        sources, targets, weights = self.edges
        calls = np.array([u.kind != "class" for u in self._index.units], dtype=np.float64)
        own = weights * self._product[self._index.unit_file[sources]] * calls[sources]
        return np.bincount(targets, weights=own, minlength=self.size).astype(np.float64)

    @cached_property
    def _calls(self) -> Floats:
        sources, _, weights = self.edges
        return np.bincount(sources, weights=weights, minlength=self.size).astype(np.float64)

    def down(self, values: Floats) -> Floats:
        """Hand each unit's value to what it calls, each callee its share of the square root of the calls."""
        sources, targets, weights = self.edges
        share = values[sources] * weights / np.sqrt(np.maximum(1.0, self._calls[sources]))
        return np.bincount(targets, weights=share, minlength=self.size).astype(np.float64)

    def up(self, values: Floats) -> Floats:
        """Hand each unit's value to its callers, less the more callers there are."""
        sources, targets, weights = self.edges
        share = values[targets] * weights / np.maximum(1.0, self.callers[targets])
        return np.bincount(sources, weights=share, minlength=self.size).astype(np.float64)
