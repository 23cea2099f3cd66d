"""Tells English from German by their commonest words."""

# ruff: noqa: E501, SIM905 - words read better than a list of strings

from __future__ import annotations

import re

_GERMAN = frozenset(
    """der die das und ist nicht ein eine einen einem einer mit auf für von zu im in den dem des wird werden sich
    auch aber wenn nach bei aus wie nur noch kein keine keinen dann wir ich es sie war sind hat haben oder beim zum zur
    über unter durch bis seit schon mehr als dass""".split()
)
_ENGLISH = frozenset(
    """the and is not a an with on for of to in at are be this that it as by from if then when but or no we i they
    was were has have after before only also which there does do did so than more will can should""".split()
)


def language_of(text: str) -> str:
    """Return `en`, `de`, or `und` when the words tell neither."""
    words = re.findall(r"[A-Za-zÄÖÜäöüß]+", text.casefold())
    german = sum(word in _GERMAN for word in words) + sum(
        "ä" in w or "ö" in w or "ü" in w or "ß" in w for w in words
    )
    english = sum(word in _ENGLISH for word in words)
    if max(german, english) < 2 or german == english:
        return "und"
    return "de" if german > english else "en"
