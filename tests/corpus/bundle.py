"""The bundled cases: `python -m tests.corpus.bundle` writes them anew below tests/corpus/bundled."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.corpus.build import Case
from tests.corpus.generate import generate, write_case

FOLDER = Path(__file__).parent / "bundled"
BUNDLED_SUBSYSTEMS = 30


class Recipe(NamedTuple):
    """Arguments of one bundled case."""

    family: str
    variant: str
    seed: int
    language: str


RECIPES = (Recipe("P1", "A", 101, "de"), Recipe("P5", "B", 101, "en"), Recipe("P6", "C", 101, "de"))


def bundled_cases() -> list[Case]:
    """Generate the bundled cases, each followed by its twin."""
    return [
        generate(r.family, r.variant, r.seed, r.language, twin=twin, subsystems=BUNDLED_SUBSYSTEMS)
        for r in RECIPES
        for twin in (False, True)
    ]


if __name__ == "__main__":
    for made in bundled_cases():
        write_case(made, FOLDER)
