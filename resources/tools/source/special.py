"""Methods that nobody calls by name: words of behaviour and the special methods that carry it.

"Two of them compare equal", "the object cannot be pickled": the report names a class and what its
objects do, the code does it in a method that the language calls. The words are everyday English and
German, the methods those of the languages themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source.parse import FUNCTION_KINDS
from resources.tools.source.scene import Scene

if TYPE_CHECKING:
    from resources.tools.source.reader import Floats, SymbolRow

MADE = re.compile(r"\b(?:construct|creat|instantiat|erzeug|erstell|anleg|angelegt)\w*", re.IGNORECASE)
"""An object comes to be: its constructor, however the language names it."""

_METHODS: tuple[tuple[str, str], ...] = (
    (
        r"equal\w*|compar\w+|identical|gleich\w*|vergl[ei]+ch\w*",
        "__eq__ __ne__ __lt__ equals compareTo operator== operator< Equal eq cmp",
    ),
    (r"hash\w*|dict(?:ionary)? keys?", "__hash__ __eq__ hashCode hash"),
    (
        r"pickl\w+|copy|copies|copied|deepcopy|kopi\w+|klon\w+|clone\w*",
        "__reduce__ __reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__ clone",
    ),
    (
        r"repr\w*|printed|prints|str\(\)|shown as|angezeigt als",
        "__repr__ __str__ __format__ toString String fmt",
    ),
    (r"iterat\w+|iterier\w+|loop\w*|durchlauf\w*", "__iter__ __next__ __aiter__ __anext__ iterator next"),
    (r"add(?:s|ed|ing|ition)?|sums?|plus|addi\w+|summe\w*", "__add__ __radd__ __iadd__ operator+ add"),
    (r"subtract\w*|minus|subtrah\w+|differen[cz]\w*", "__sub__ __rsub__ operator- sub"),
    (r"multipl\w+|product|times|produkt\w*", "__mul__ __rmul__ __matmul__ operator* mul"),
    (r"divi[ds]\w+|quotient\w*|geteilt", "__truediv__ __rtruediv__ __floordiv__ __div__ operator/ div"),
    (r"length|len|länge", "__len__ length size len"),
    (r"index\w*|slic\w+|subscript\w*|indizier\w*", "__getitem__ __setitem__ __delitem__ operator[] index"),
    (r"bool\w*|truth\w*|falsy|truthy|wahrheitswert\w*", "__bool__ __nonzero__"),
    (r"attributes?|attribut\w*", "__getattr__ __getattribute__ __setattr__"),
    (r"context manager|with (?:block|statement)|kontextmanager", "__enter__ __exit__ __aenter__ __aexit__"),
    (r"callable|calling|aufrufbar\w*", "__call__ operator()"),
    (r"contains?|membership|enthält|enthalten", "__contains__ contains"),
)
_BY_WORD = tuple(
    (re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE), tuple(methods.split()))
    for words, methods in _METHODS
)


def special(scene: Scene, meant: Floats) -> Floats:
    """Return per unit how much the report speaks of what this special method does.

    Args:
        scene: report and tree.
        meant: per unit how much the report means it; those of classes count.
    """
    result = np.zeros(scene.n_units)
    classes = {
        (s.file, s.qualname): (float(meant[s.unit]), s.id)
        for unit in np.flatnonzero(meant > LEAST).tolist()
        for s in _class_of(scene, unit)
    }
    if not classes:
        return result
    text = "\n".join([scene.report.title, *(line for line, weight in scene.report.prose if weight >= 0.5)])
    if MADE.search(text):
        for value, number in classes.values():
            constructor = scene.graph.constructor.get(number)
            if constructor is not None:
                result[constructor] = max(result[constructor], value)
    for words, methods in _BY_WORD:
        if not words.search(text):
            continue
        for method in methods:
            for symbol in scene.product_definitions(method):
                owner = re.split(r"(?:\.|::)(?=[^.:]+$)", symbol.qualname)[0]
                found = classes.get((symbol.file, owner))
                if found is not None and symbol.kind in FUNCTION_KINDS:
                    result[symbol.unit] = max(result[symbol.unit], found[0])
    return result


LEAST = 0.25
"""How much a class must be meant."""


def _class_of(scene: Scene, unit: int) -> list[SymbolRow]:
    row = scene.index.units[unit]
    if row.kind != "class" or scene.product_units[unit] <= 0:
        return []
    return [scene.index.symbols[row.symbol]]
