"""A report that is only a crash or a log goes all the way, and the function where it stopped is ranked first."""

# ruff: noqa: E501 - crashes and sources stand here as they are printed

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import viano
from viano_assets.package.store import CheckpointStore

CASES: dict[str, tuple[str, dict[str, str], tuple[str, str]]] = {
    "python": (
        'Traceback (most recent call last):\n  File "/srv/app/port/run.py", line 5, in main\n    print(mean(rows))\n  File "/srv/app/port/stats.py", line 3, in mean\n    return sum(rows) / len(rows)\nZeroDivisionError: division by zero\n',
        {
            "port/run.py": "from port.stats import mean\n\ndef main():\n    rows = []\n    print(mean(rows))\n",
            "port/stats.py": "def mean(rows):\n    # average of a column\n    return sum(rows) / len(rows)\n\ndef median(rows):\n    return sorted(rows)[len(rows) // 2]\n",
            "port/other.py": "def load(path):\n    return open(path).read()\n",
        },
        ("port/stats.py", "mean"),
    ),
    "node": (
        "/srv/port/berth.js:3\n    return ship.id;\n                ^\n\nTypeError: Cannot read properties of undefined (reading 'id')\n    at assign (/srv/port/berth.js:3:17)\n    at Object.<anonymous> (/srv/port/main.js:2:1)\n    at Module._compile (node:internal/modules/cjs/loader:1105:14)\n\nNode.js v18.1.0\n",
        {
            "berth.js": "'use strict';\nfunction assign(ship) {\n    return ship.id;\n}\nmodule.exports = { assign };\n",
            "main.js": "const { assign } = require('./berth');\nassign(undefined);\n",
            "other.js": "function load() { return 1; }\n",
        },
        ("berth.js", "assign"),
    ),
    "go": (
        "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.(*Port).Assign(0xc000010000, 0x5)\n\t/srv/port/port.go:8 +0x1d\nmain.main()\n\t/srv/port/main.go:5 +0x25\nexit status 2\n",
        {
            "port.go": "package main\n\ntype Port struct {\n\tslots [3]int\n}\n\nfunc (p *Port) Assign(n int) {\n\tp.slots[n] = 1\n}\n",
            "main.go": "package main\n\nfunc main() {\n\tp := Port{}\n\tp.Assign(5)\n}\n",
            "other.go": "package main\n\nfunc size() int { return 3 }\n",
        },
        ("port.go", "Assign"),
    ),
    "rust": (
        "thread 'main' panicked at src/port.rs:5:9:\nindex out of bounds: the len is 3 but the index is 5\nstack backtrace:\n   0: rust_begin_unwind\n   1: core::panicking::panic_bounds_check\n   2: port::Port::assign\n             at ./src/port.rs:5:9\n   3: port::main\n             at ./src/main.rs:4:5\nnote: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n",
        {
            "src/port.rs": "pub struct Port { pub slots: Vec<i32> }\n\nimpl Port {\n    pub fn assign(&mut self, n: usize) {\n        self.slots[n] = 1;\n    }\n}\n",
            "src/main.rs": "mod port;\nfn main() {\n    let mut p = port::Port { slots: vec![0; 3] };\n    p.assign(5);\n}\n",
            "src/other.rs": "pub fn size() -> usize { 3 }\n",
        },
        ("src/port.rs", "assign"),
    ),
    "cpp": (
        "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is 5) >= this->size() (which is 3)\nAborted (core dumped)\n#0  0x00007f in raise () from /lib/libc.so.6\n#1  0x000055d0 in port::Berth::assign (this=0x0, n=5) at src/berth.cpp:5\n#2  0x000055d9 in main (argc=1, argv=0x7ffe) at src/main.cpp:4\n",
        {
            "src/berth.cpp": "#include <vector>\nnamespace port {\nstruct Berth { std::vector<int> slots; void assign(int n); };\nvoid Berth::assign(int n) {\n  slots.at(n) = 1;\n}\n}\n",
            "src/main.cpp": '#include "berth.h"\nint main(int argc, char** argv) {\n  port::Berth b;\n  b.assign(5);\n}\n',
            "src/other.cpp": "int size() { return 3; }\n",
        },
        ("src/berth.cpp", "assign"),
    ),
    "log": (
        "2024-01-01 10:00:00 INFO start of harbour service\n2024-01-01 10:00:01 ERROR cannot open berth 12: slot table is locked\n2024-01-01 10:00:02 INFO stop\n",
        {
            "port/open.py": "import logging\n\ndef open_berth(number, table):\n    if table.locked:\n        logging.error('cannot open berth %d: slot table is locked', number)\n        return None\n    return table[number]\n",
            "port/run.py": "import logging\n\ndef main():\n    logging.info('start of harbour service')\n    logging.info('stop')\n",
            "port/other.py": "def load(path):\n    return open(path).read()\n",
        },
        ("port/open.py", "open_berth"),
    ),
}


@pytest.mark.parametrize("form", CASES)
def test_a_report_that_is_only_a_crash_is_analysed(form: str, tmp_path: Path) -> None:
    text, files, (path, function) = CASES[form]
    for name, content in files.items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(content)
    report = tmp_path / ("report.log" if form == "log" else "report.txt")
    report.write_text(text)
    home = tmp_path / "home"
    imported = viano(
        home, "case", "import", "--case-id", form, "--report", str(report), "--source", str(tmp_path / "src")
    )
    assert imported.status == 0, imported.err
    done = viano(home, "run", form, "--json")
    assert done.status == 0, done.err
    assert done.document["diagnosis"]["status"] in {"confirmed", "inconclusive"}
    store = CheckpointStore(home)
    head = store.latest(form)
    rows: list[dict[str, str]] = []
    for name in sorted(head.files):
        if "/evidence" in name and name.endswith(".json"):
            document = json.loads(store.read(head, name))
            for record in document.get("records", document.get("evidence", [document])):
                if record.get("tool") == "source.rank" and '"ranking": "symbols"' in record["content"]:
                    rows = [json.loads(line) for line in record["content"].split("\n")[1:]]
    assert rows
    assert f"/{path}".endswith(f"/{rows[0]['path']}")
    assert rows[0]["symbol"].replace("::", ".").split(".")[-1] == function
