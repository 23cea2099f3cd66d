"""Run one suite by name; the last line on standard output is its JSON object."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    here = Path(__file__).parent
    names = sorted(m.name for m in pkgutil.iter_modules([str(here)]) if m.name != "run" and m.name[0] != "_")
    if len(arguments) != 1 or arguments[0] not in names:
        sys.stderr.write(f"name one of: {', '.join(names)} (NAME=...)\n")
        return 2
    figures = importlib.import_module(f"tests.benchmarks.{arguments[0]}").main()
    sys.stdout.write(json.dumps(figures, allow_nan=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
