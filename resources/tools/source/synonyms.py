"""The tree as its own dictionary: words of the report that name nothing, and what stands with them.

People write "letters" where the code says `glyph`; comments, docstrings, messages, tests and documentation
of the tree use both. A word that names next to nothing is joined by the identifier words that occur in
the same units far more often than chance has it (normalised pointwise mutual information).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from resources.tools.source.languages import Role
from resources.tools.source.scene import Scene

if TYPE_CHECKING:
    from resources.tools.source.reader import Ints

NAMED = 3
"""A word in more names of product code needs no translation."""
TOGETHER = 3
"""In how many units the two words stand together at least."""
SHARE = 0.2
"""In how many of the word's units the other stands at least."""
LEAST = 0.2
PER_WORD = 3
WORDS = 40
"""How many words of the report are translated; bounds the cost."""
SPOKEN = ("comment", "string")
"""Fields in which people write."""


def synonyms(scene: Scene, query: Mapping[str, float]) -> dict[str, float]:
    """Return further terms with weights for the query's terms that hardly name anything."""
    index = scene.index
    roles = {Role.PRODUCT, Role.TEST, Role.DOCS}
    files = np.array([f.indexed and f.role in roles for f in index.files], dtype=np.bool_)
    used = files[index.unit_file] if len(files) else np.zeros(0, np.bool_)
    count = int(used.sum())
    wanted = [t for t in sorted(query) if query[t] > 0 and not t.startswith("=") and _nameless(scene, t)]
    wanted = sorted(wanted, key=lambda t: (-query[t], t))[:WORDS]
    if not wanted:
        return {}
    terms, units = index.fields["body"].forward()
    inside = used[units]
    terms, units = terms[inside], units[inside]
    frequency = np.bincount(terms, minlength=len(index.vocabulary))
    words = list(index.vocabulary)
    known = {index.vocabulary[t] for t in query if t in index.vocabulary}
    found: dict[str, float] = {}
    for term in wanted:
        where = _spoken(scene, term)
        where = where[used[where]]
        if not TOGETHER <= len(where) <= count / 30:
            continue
        mask = np.zeros(scene.n_units, np.bool_)
        mask[where] = True
        together = np.bincount(terms[mask[units]], minlength=len(words))
        enough = max(TOGETHER, SHARE * len(where))
        near = np.flatnonzero((together >= enough) & (frequency <= count / 20))
        if not len(near):
            continue
        share = together[near] / count
        value = np.log(share * count**2 / (len(where) * frequency[near])) / -np.log(share)
        best = [int(i) for i in np.lexsort((near, -value)) if value[i] >= LEAST and int(near[i]) not in known]
        for i in [i for i in best if not words[near[i]].startswith("=")][:PER_WORD]:
            word = words[near[i]]
            found[word] = max(found.get(word, 0.0), query[term] * float(value[i]))
    return found


def _nameless(scene: Scene, term: str) -> bool:
    number = scene.index.vocabulary.get(term)
    if number is None:
        return False
    units, _ = scene.index.fields["name"].posting(number)
    return float(scene.product_units[units].sum()) <= NAMED


def _spoken(scene: Scene, term: str) -> Ints:
    number = scene.index.vocabulary[term]
    return np.unique(np.concatenate([scene.index.fields[f].posting(number)[0] for f in SPOKEN]))
