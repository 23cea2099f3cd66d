"""Places next to a place: overriding methods, imported files, words that stand together, overload stubs."""

from __future__ import annotations

import json

import pytest

from tests.resources.tools.source.conftest import Open


def _ranked(open_tree: Open, files: dict[str, str], text: str, part: int) -> dict[str, dict[str, float]]:
    content = open_tree(files).rank({"text": text, "limit": 50}).drafts[part].content
    return {e.get("symbol") or e["path"]: e["signals"] for e in map(json.loads, content.splitlines()[1:])}


OVERRIDES = {
    "python": {
        "yard/base.py": """
class Lift:
    def raise_it(self, x):
        # Raises a pallet with care.
        return x
""",
        "yard/own.py": """
from yard.base import Lift

class Fork(Lift):
    def raise_it(self, x):
        return 2 * x
""",
    },
    "java": {
        "yard/Lift.java": """
class Lift {
  /** Raises a pallet with care. */
  int raiseIt(int x) { return x; }
}
""",
        "yard/Fork.java": "class Fork extends Lift {\n  int raiseIt(int x) { return 2 * x; }\n}\n",
    },
}


@pytest.mark.parametrize("language", sorted(OVERRIDES))
def test_an_overriding_method_gains_from_what_the_base_promises(open_tree: Open, language: str) -> None:
    found = _ranked(open_tree, OVERRIDES[language], "A pallet is not raised with care", 0)
    derived = next(name for name in found if name.startswith("Fork"))
    assert found[derived]["overrides"] > 0.9
    assert not any("overrides" in found[name] for name in found if name.startswith("Lift"))


IMPORTS = {
    "python": {
        "yard/pallet.py": "from .deep import a\n\ndef stack_pallet(pallet):\n    return a.go(pallet)\n",
        "yard/deep/__init__.py": "",
        "yard/deep/a.py": "def go(x):\n    return x\n",
        "yard/deep/b.py": "def go(x):\n    return x\n",
    },
    "c": {
        "yard/pallet.c": '#include "deep/a.h"\nint stack_pallet(int pallet) { return pallet; }\n',
        "yard/deep/a.c": "int go(int x) { return x; }\n",
        "yard/deep/b.c": "int gone(int x) { return x; }\n",
    },
    "javascript": {
        "yard/pallet.js": "import { go } from './deep/a';\nfunction stackPallet(pallet) { return 1; }\n",
        "yard/deep/a.js": "function go(x) { return x; }\n",
        "yard/deep/b.js": "function gone(x) { return x; }\n",
    },
    "java": {
        "yard/Pallet.java": "import yard.deep.A;\nclass Pallet { int stackPallet(int p) { return 1; } }\n",
        "yard/deep/A.java": "class A { int go(int x) { return x; } }\n",
        "yard/deep/B.java": "class B { int gone(int x) { return x; } }\n",
    },
}


@pytest.mark.parametrize("language", sorted(IMPORTS))
def test_what_the_likely_file_imports_is_likelier_than_its_neighbour(open_tree: Open, language: str) -> None:
    files = IMPORTS[language]
    found = _ranked(open_tree, files, "Stacking a pallet goes wrong", 1)
    near = next(p for p in files if "/deep/a." in p.lower())
    far = next(p for p in files if "/deep/b." in p.lower())
    assert found[near]["imports"] == 1.0
    assert "imports" not in found.get(far, {})


def test_a_word_that_names_nothing_is_translated_by_the_comments_of_the_tree(open_tree: Open) -> None:
    """`soot` stands only in comments, always beside the flue; the place itself has no comment at all."""
    pieces = [f'def flue_{n}(x):\n    """Soot settles in here."""\n    return flue(x)\n' for n in range(6)]
    other = [f"def part_{n}(x):\n    return frame_{n}(x)\n" for n in range(400)]
    place = "def flue(x):\n    return x\n"
    files = {
        "oven/pieces.py": "\n\n".join(pieces),
        "oven/draft.py": place,
        "oven/parts.py": "\n\n".join(other),
    }
    found = _ranked(open_tree, files, "There is soot on the bread", 0)
    assert found["flue"]["synonyms"] > 0.5
    assert not any("synonyms" in s for name, s in found.items() if name.startswith("part_"))


def test_the_signature_of_an_overload_is_no_place(open_tree: Open) -> None:
    code = (
        "@overload\ndef weigh(pallet: int) -> int: ...\n\n"
        "@overload\ndef weigh(pallet: str) -> str: ...\n\n"
        "def weigh(pallet):\n    return pallet\n\n"
        "def later(pallet): ...\n"
    )
    content = (
        open_tree({"yard/scale.py": code})
        .rank({"text": "`weigh` forgets the pallet, later"})
        .drafts[0]
        .content
    )
    found = [(e["symbol"], e["lines"]) for e in map(json.loads, content.splitlines()[1:])]
    assert sorted(found) == [("later", [10, 10]), ("weigh", [7, 8])]
