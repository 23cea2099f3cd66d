"""A crash in the log leads to the function that used what was not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.llm.providers.offline.crash import stacks, untested
from resources.llm.providers.offline.findings import Findings, Record
from resources.llm.providers.offline.scene import Scene
from resources.llm.providers.offline.view import Case, Source
from tests.support.railway_case import diagnosed
from viano_assets.evidence.model import Location

NATIVE = """10:00:01 tram 4 leaves depot 2
10:00:02 caught signal 11 (SIGSEGV), address 0x10
10:00:02 #0 0x0000aa12 in tram::Depot::Log(int) (this=0x0)
10:00:02 #1 0x0000ab99 in tram::Yard::Close(int) at src/Yard.cpp
10:00:02 #2 0x0000ac00 in main
"""

CLOSE = """void Yard::Close(int id)
{
    Depot* depot = Find(id);
@    depot->Log(id);
}"""

SCRIPT = """Traceback (most recent call last):
  File "/srv/shop/run.py", line 9, in main
  File "/srv/shop/till.py", line 4, in close
AttributeError: 'NoneType' object has no attribute 'total'
"""


def scene(report: str, log: str, code: str, symbol: str) -> Scene:
    """Return a case with a log and a function that were looked at."""
    place = Location(path="src/Yard.cpp", symbol=symbol, line_start=1, line_end=9)
    records = {
        "E1": Record("E1", "log.search", "log", log, "complete", Location(path="a.log"), ()),
        "E2": Record("E2", "source.symbol", "source", code, "complete", place, ()),
    }
    source = Source("S1", "observation", report, None, {})
    return Scene(Case("Evenings", "en", (source,), frozenset()), {}, [], Findings(records=records))


@pytest.mark.parametrize(
    ("before", "accused"),
    [
        ("", True),
        ("    Note(id);\n", True),
        ("    if (!depot)\n        return;\n", False),
        ("    if (depot == nullptr)\n        return;\n", False),
        ("    if (id > 0 && depot)\n        Note(id);\n", False),
        ("    assert(depot);\n", False),
    ],
)
def test_only_what_is_never_tested_is_accused(before: str, *, accused: bool) -> None:
    here = scene("The server crashes.", NATIVE, CLOSE.replace("@", before), "tram::Yard::Close")
    found = untested(here)
    assert (found is not None) is accused
    if found is not None:
        assert (found.line, found.receiver, found.stack.on_nothing) == ("depot->Log(id);", "depot", True)


def test_a_stack_of_a_script() -> None:
    code = "def close(shift):\n    till = find(shift)\n    return till.total(shift)\n"
    here = scene("It ended with an exception.", SCRIPT, code, "close")
    assert [(s.called, s.caller) for s in stacks(here)] == [("total", "close")]
    assert untested(here) is not None


def test_a_report_of_something_else_is_not_about_the_crash() -> None:
    here = scene("The door stays shut.", NATIVE, CLOSE.replace("@", ""), "tram::Yard::Close")
    assert untested(here) is None


def test_a_call_on_something_is_no_proof() -> None:
    log = NATIVE.replace("this=0x0", "this=0x7f001200")
    assert untested(scene("It crashes.", log, CLOSE.replace("@", ""), "tram::Yard::Close")) is None


REPORT = """# The tram server crashes at night

## Observed
Once or twice a night the server crashes. Nobody knows why.

## Expected
It keeps running.
"""


@pytest.mark.parametrize("tested", [False, True])
def test_the_stack_of_the_log_leads_to_the_place(tmp_path: Path, *, tested: bool) -> None:
    code = CLOSE.replace("@", "    if (!depot)\n        return;\n" if tested else "")
    files = {
        f"src/misc/Unit{n}.cpp": f"int Unit{n}::Size(int v)\n{{\n    return v + {n};\n}}\n" for n in range(6)
    }
    files |= {
        "src/Yard.cpp": f'#include "Yard.h"\n\nnamespace tram {{\n\n{code}\n\n}}\n',
        "CMakeLists.txt": "project(tram)\n",
        "src/Depot.cpp": "namespace tram {\n\nvoid Depot::Log(int id)\n{\n    last_ = id;\n}\n\n}\n",
    }
    noise = "".join(f"09:{n:02d}:00 tram {n} enters depot {n % 3}\n" for n in range(50))
    view = diagnosed(tmp_path, REPORT, files, {"server.log": noise + NATIVE})
    if tested:
        assert view["diagnosis"]["status"] == "inconclusive"
        return
    assert view["diagnosis"]["status"] == "confirmed", view["diagnosis"]
    cause = view["diagnosis"]["root_cause"]
    first = next(r for r in view["evidence"] if r["evidence_id"] == cause["evidence_ids"][0])
    assert (first["path"], first["symbol"]) == ("src/Yard.cpp", "tram::Yard::Close")
    assert "`depot->Log(id);`" in cause["technical_description"]
    assert "this=0x0" in cause["technical_description"]
