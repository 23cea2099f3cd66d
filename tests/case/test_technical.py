"""Stack traces, errors and log lines as they are pasted, in the languages people send."""

# ruff: noqa: E501, ISC004 - traces stand here as they are pasted

from __future__ import annotations

import pytest

from tests.case.reading import read

TRACES: dict[str, tuple[str, list[tuple[str, str, str]], str]] = {
    "python": (
        'Traceback (most recent call last):\n  File "/srv/app/run.py", line 3, in main\n    load(path)\n'
        '  File "/srv/app/load.py", line 40, in load\n    return rows[at]\n           ~~~~^^^^\nIndexError: list index out of range',
        [("/srv/app/load.py", "40", "load"), ("/srv/app/run.py", "3", "main")],
        "IndexError",
    ),
    "python list": (
        "Frames, innermost last:\n\n- `app/run.py:3`, `main`\n- `app/load.py`, `load`\n- `KeyError: 'x'`",
        [("app/load.py", "", "load"), ("app/run.py", "3", "main")],
        "KeyError",
    ),
    "java": (
        'Exception in thread "main" java.lang.IllegalStateException: no berth\n'
        "\tat org.port.Berth.assign(Berth.java:88)\n\tat org.port.Main.main(Main.java:12)\n\t... 3 more",
        [("Berth.java", "88", "org.port.Berth.assign"), ("Main.java", "12", "org.port.Main.main")],
        "java.lang.IllegalStateException",
    ),
    "dotnet": (
        "Unhandled exception. System.NullReferenceException: Object reference not set.\n"
        "   at Port.Berth.Assign(Ship ship) in C:\\src\\Berth.cs:line 88\n   at Port.Program.Main(String[] args) in C:\\src\\Program.cs:line 9",
        [("C:\\src\\Berth.cs", "88", "Port.Berth.Assign"), ("C:\\src\\Program.cs", "9", "Port.Program.Main")],
        "System.NullReferenceException",
    ),
    "javascript": (
        "TypeError: Cannot read properties of undefined (reading 'id')\n"
        "    at assign (/srv/port/berth.js:88:13)\n    at async main (/srv/port/main.js:9:3)\n    at /srv/port/boot.js:2:1",
        [("/srv/port/berth.js", "88", "assign"), ("/srv/port/main.js", "9", "main"), ("/srv/port/boot.js", "2", "")],
        "TypeError",
    ),
    "go": (
        "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\n"
        "main.(*Port).Assign(0xc000010000, 0x5)\n\t/srv/port/port.go:88 +0x1d\nmain.main()\n\t/srv/port/main.go:9 +0x25",
        [("/srv/port/port.go", "88", "main.(*Port).Assign"), ("/srv/port/main.go", "9", "main.main")],
        "panic",
    ),
    "rust": (
        "thread 'main' panicked at src/port.rs:88:5:\nindex out of bounds\nstack backtrace:\n"
        "   0: port::Port::assign\n             at ./src/port.rs:88:5\n   1: port::main\n             at ./src/main.rs:9:5",
        [("./src/port.rs", "88", "port::Port::assign"), ("./src/main.rs", "9", "port::main")],
        "",
    ),
    "gdb": (
        "Program received signal SIGSEGV, Segmentation fault.\n"
        "#0  0x000055d0 in port::Berth::assign (this=0x0, ship=@0x7ff) at src/berth.cpp:88\n"
        "#1  0x000055d9 in main (argc=1, argv=0x7ffe) at src/main.cpp:9",
        [("src/berth.cpp", "88", "port::Berth::assign"), ("src/main.cpp", "9", "main")],
        "",
    ),
    "sanitizer": (
        "==1==ERROR: AddressSanitizer: heap-use-after-free\n"
        "    #0 0x4f1a in port::Berth::assign(port::Ship const&) /srv/src/berth.cpp:88:13\n"
        "    #1 0x4f2b in main /srv/src/main.cpp:9:3",
        [("/srv/src/berth.cpp", "88", "port::Berth::assign"), ("/srv/src/main.cpp", "9", "main")],
        "",
    ),
    "windows dump": (
        "00007FF6A1B2C3D4  0000000000000001  Berth::Assign+2F3  c:\\src\\berth.cpp line 88\n"
        "00007FF6A1B2C3D9  0000000000000001  main+1A  c:\\src\\main.cpp line 9",
        [("c:\\src\\berth.cpp", "88", "Berth::Assign"), ("c:\\src\\main.cpp", "9", "main")],
        "",
    ),
    "lua": (
        "scripts/berth.lua:88: attempt to index a nil value (field 'ship')\nstack traceback:\n"
        "\tscripts/berth.lua:88: in function 'assign'\n\tscripts/main.lua:9: in main chunk",
        [("scripts/berth.lua", "88", "assign"), ("scripts/main.lua", "9", "main")],
        "",
    ),
    "php": (
        "Fatal error: Uncaught Error: Call to a member function id() on null\n"
        "#0 /srv/main.php(9): assign()\n#1 {main}",
        [("/srv/main.php", "9", "assign")],
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fenced", [True, False], ids=["in a fence", "bare"])
@pytest.mark.parametrize("name", TRACES)
def test_frames_are_parsed_innermost_first(name: str, fenced: bool) -> None:
    text, frames, error = TRACES[name]
    body = f"```\n{text}\n```" if fenced and "`" not in text else text
    reading = read(
        f"# It stops\n\n**Observed**\n\nThe program stops.\n\n{body}\n\n**Expected**\n\nIt runs.\n"
    )
    found = [s for s in reading.sources if s.kind == "stack_frame"]
    assert all(s.type.value == "technical_fact" for s in found)
    ordered = sorted(found, key=lambda s: int(s.attributes["depth"]))
    assert [
        (s.attributes.get("file", ""), s.attributes.get("line", ""), s.attributes.get("function", ""))
        for s in ordered
    ] == frames
    if error:
        assert error in [s.attributes.get("exception") for s in reading.sources if s.kind == "error"]


@pytest.mark.parametrize(
    ("line", "time", "level", "message"),
    [
        ("2024-05-01 10:00:00 ERROR: table `x` missing", "2024-05-01 10:00:00", "ERROR", "table `x` missing"),
        ("2024-05-01 10:00:00 ERROR:no space", "2024-05-01 10:00:00", "ERROR", "no space"),
        ("2021-12-11_05:30:35 ERROR [sql.sql] bad row", "2021-12-11_05:30:35", "ERROR", "[sql.sql] bad row"),
        ("[2024-05-01T10:00:00.123Z] [WARN] slow", "2024-05-01T10:00:00.123Z", "WARN", "slow"),
        ("01.05.2024 10:00:00 Dienst gestartet", "01.05.2024 10:00:00", "", "Dienst gestartet"),
        ("May  1 10:00:00 host app[12]: started", "May  1 10:00:00", "", "host app[12]: started"),
        ("[ERROR] cannot open", "", "ERROR", "cannot open"),
    ],
)
def test_log_lines(line: str, time: str, level: str, message: str) -> None:
    reading = read(f"**Observed**\n\nThe log says:\n\n```\n{line}\n```\n")
    (found,) = [s for s in reading.sources if s.kind == "log_line"]
    assert found.text == line
    assert (found.attributes.get("time", ""), found.attributes.get("level", "")) == (time, level)
    assert found.attributes["message"] == message


def test_a_diff_is_a_proposed_change_wherever_it_stands() -> None:
    reading = read("**Observed**\nIt fails.\n\n```\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n```\n")
    assert [s.kind for s in reading.sources if s.type.value == "tester_assumption"] == ["patch"]


def test_sql_is_a_fix_only_when_offered_as_one() -> None:
    """The same statement is a step when the tester ran it, and an assumption when it shall cure the bug."""
    ran = read("**Steps**\n1. Run:\n\n```sql\nUPDATE t SET a = 1;\n```\n")
    offered = read(
        "**Observed**\nWrong value.\n\nThe following SQL fixes it:\n\n```sql\nUPDATE t SET a = 1;\n```\n"
    )
    labelled = read("**Ist**\nFalscher Wert.\n\n**Lösungsvorschlag**\n\n```sql\nUPDATE t SET a = 1;\n```\n")
    for reading, type_ in (
        (ran, "reproduction_step"),
        (offered, "tester_assumption"),
        (labelled, "tester_assumption"),
    ):
        assert [s.type.value for s in reading.sources if s.kind == "sql"] == [type_]


@pytest.mark.parametrize(
    ("sentence", "kind", "attributes"),
    [
        ("Quest 8485 hangs.", "id", {"label": "quest", "value": "8485"}),
        ("Der Vertrag mit der Vertrag-ID 1042 fehlt.", "id", {"label": "vertrag", "value": "1042"}),
        ("See BUG-17.", "id", {"value": "BUG-17"}),
        ("Broken since commit 1f2e3d4c5b.", "commit", {"commit": "1f2e3d4c5b"}),
        ("It stands in `src/a/b.cpp:12`.", "path", {"file": "src/a/b.cpp", "line": "12", "language": "cpp"}),
        ("The call `Berth::assign()` returns.", "symbol", {"name": "Berth::assign", "last": "assign"}),
        ("Look at https://example.org/x?y=1.", "url", {"url": "https://example.org/x?y=1"}),
        ('It says "no free berth" then.', "literal", {"marked": "quote"}),
        ("Es meldet „kein Platz frei“ dann.", "literal", {"marked": "quote"}),
        ("Since Port 2.4.1 it fails.", "version", {"name": "Port", "version": "2.4.1"}),
        ("Run `make test` first.", "command", {"command": "make test"}),
    ],
)  # fmt: skip
def test_mentions_in_prose(sentence: str, kind: str, attributes: dict[str, str]) -> None:
    reading = read(f"**Observed**\n\n{sentence}\n")
    found = [s for s in reading.sources if s.kind == kind]
    assert len(found) == 1
    assert attributes.items() <= found[0].attributes.items()
    whole = next(s for s in reading.sources if s.kind is None)
    assert whole.text == sentence
    assert whole.type.value == "observation"


def test_a_file_named_in_a_guess_is_no_fact() -> None:
    reading = read(
        "**Observed**\nIt stops. I suspect `src/a.cpp`, perhaps id 4711 is wrong. `src/b.cpp` is old.\n"
    )
    named = {s.text: s for s in reading.sources if s.kind in {"path", "id"}}
    assert named["src/a.cpp"].type.value == "implementation_reference"
    assert named["src/a.cpp"].attributes["assumed"] == "true"
    assert named["id 4711"].type.value == "tester_assumption"
    assert "assumed" not in named["src/b.cpp"].attributes


CRASHES: dict[str, tuple[str, list[str]]] = {
    "python": (TRACES["python"][0], ["IndexError: list index out of range"]),
    "fenced": (f"```\n{TRACES['python'][0]}\n```\n", ["IndexError: list index out of range"]),
    "java": (
        TRACES["java"][0],
        ['Exception in thread "main" java.lang.IllegalStateException: no berth'],
    ),
    "java cause": (
        "java.lang.RuntimeException: wrapped\n\tat org.port.A.a(A.java:1)\n"
        "Caused by: java.lang.NullPointerException\n\tat org.port.B.b(B.java:2)\n\t... 3 more\n",
        ["java.lang.RuntimeException: wrapped", "Caused by: java.lang.NullPointerException"],
    ),
    "dotnet": (
        TRACES["dotnet"][0],
        ["Unhandled exception. System.NullReferenceException: Object reference not set."],
    ),
    "node": (
        "/srv/port/berth.js:88\n    return ship.id;\n                ^\n\n"
        "TypeError: Cannot read properties of undefined (reading 'id')\n    at assign (/srv/port/berth.js:88:13)\n"
        "    at Module._compile (node:internal/modules/cjs/loader:1105:14)\n\nNode.js v18.1.0\n",
        ["TypeError: Cannot read properties of undefined (reading 'id')"],
    ),
    "go": (TRACES["go"][0], ["panic: runtime error: index out of range [5] with length 3"]),
    "rust": (
        "thread 'main' panicked at src/port.rs:5:9:\nindex out of bounds\nstack backtrace:\n   0: rust_begin_unwind\n"
        "   1: port::Port::assign\n             at ./src/port.rs:5:9\n"
        "note: run with `RUST_BACKTRACE=full` for a verbose backtrace.\n",
        ["thread 'main' panicked at src/port.rs:5:9:\nindex out of bounds"],
    ),
    "c++": (
        "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check\n"
        "Aborted (core dumped)\n",
        [
            "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check",
            "Aborted (core dumped)",
        ],
    ),
    "gdb": (TRACES["gdb"][0], ["Program received signal SIGSEGV, Segmentation fault."]),
    "sanitizer": (TRACES["sanitizer"][0], ["==1==ERROR: AddressSanitizer: heap-use-after-free"]),
    "lua": (TRACES["lua"][0], ["scripts/berth.lua:88: attempt to index a nil value (field 'ship')"]),
    "log": (
        "2024-01-01 10:00:00 INFO start\n2024-01-01 10:00:01 ERROR cannot open berth 12\n2024-01-01 10:00:02 INFO stop\n",
        ["2024-01-01 10:00:01 ERROR cannot open berth 12"],
    ),
    "log without levels": (
        "10:00:00 start\n10:00:01 loading failed for berth 12\n",
        ["10:00:01 loading failed for berth 12"],
    ),
    "frames alone": (TRACES["windows dump"][0], [TRACES["windows dump"][0].split("\n")[0]]),
}  # fmt: skip


@pytest.mark.parametrize("form", CRASHES)
def test_of_a_report_without_a_word_of_a_person_the_printed_failure_was_seen(form: str) -> None:
    text, seen = CRASHES[form]
    reading = read(text)
    assert [s.text for s in reading.sources if s.type.value == "observation"] == seen
    assert not [s for s in reading.sources if s.type.value in {"report", "comment", "tester_assumption"}]
    assert " ".join(seen[0].split()).startswith(reading.title.rstrip("…"))


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("The crane stops when it is loaded.\n\n", "technical_fact"),
        ("## Possible cause\n\n", "technical_fact"),
        ("## Expected\n\n", "technical_fact"),
    ],
)
def test_a_printed_failure_stays_a_fact_beside_words_and_under_a_guess(before: str, kept: str) -> None:
    reading = read(f"{before}```\n{TRACES['python'][0]}\n```\n")
    (error,) = [s for s in reading.sources if s.kind == "error"]
    assert error.type.value == kept


def test_a_log_that_is_the_whole_report_is_read() -> None:
    log = "2024-01-01 10:00:01 ERROR cannot open berth 12\n"
    (line,) = read(log, "server.log").sources
    assert (line.type.value, line.kind) == ("observation", "log_line")
