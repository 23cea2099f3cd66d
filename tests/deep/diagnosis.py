"""`make test-deep NAME=diagnosis`: fabricated and drifted claims, overclaims, crash points, mutants."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.deep._diagnosis_claims import drifted, fabricated
from tests.deep._diagnosis_crashes import crashes
from tests.deep._diagnosis_overclaims import overclaims

SEED = 20_310_401


def main() -> dict[str, object]:
    """Return the figures of the verdict."""
    figures: dict[str, Any] = {}
    figures.update(fabricated(SEED))
    figures.update(drifted(SEED, 200))
    figures.update(overclaims())
    figures.update(crashes())
    command = [sys.executable, "-m", "tests.deep._diagnosis_mutation"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures.update(json.loads(done.stdout.splitlines()[-1]))
    return figures
