"""A process that publishes units of the evidence index, or reads it, until it is told to stop.

`python -m tests.support.index_worker write|read HOME NUMBER STOP_FILE`; prints one JSON object at the end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from resources.evidence_index import EvidenceIndex
from tests.support.index_units import WHOLE, unit, unit_rows

OWN_UNITS = 5


def write(home: Path, number: int, stop: Path) -> dict[str, int]:
    """Publish own units over and over, each with a higher mark and another number of records."""
    index = EvidenceIndex(home)
    mark = 0
    while mark <= 20 or not stop.exists():
        mark += 1
        case_id = f"W{number}-{mark % OWN_UNITS}"
        index.publish(unit(case_id), mark, unit_rows(case_id, mark, evidence=mark % 4))
    return {"published": mark}


def read(home: Path, number: int, stop: Path) -> dict[str, int]:
    """Read again and again: nothing may vanish, go back in time, or be half of two publications."""
    del number
    index = EvidenceIndex(home)
    seen: dict[str, int] = {}
    reads = torn = lost = 0
    while reads == 0 or not stop.exists():
        found = {}
        for case_id, mark, said, count, least, most in index.query(WHOLE).rows:
            found[case_id] = mark
            torn += not (said == count and least == most == mark)
        lost += sum(found.get(case_id, 0) < mark for case_id, mark in seen.items())
        seen |= found
        reads += 1
    return {"reads": reads, "torn": torn, "lost": lost}


def main() -> None:
    """Run one role."""
    role, home, number, stop = sys.argv[1:]
    work = {"write": write, "read": read}[role]
    start = time.monotonic()
    figures = work(Path(home), int(number), Path(stop))
    print(json.dumps({**figures, "seconds": round(time.monotonic() - start, 3)}))


if __name__ == "__main__":
    main()
