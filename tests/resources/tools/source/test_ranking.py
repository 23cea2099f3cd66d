"""The report taken apart, the signals one by one on small trees, and the ranking as evidence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from resources.tools.source.lexicon import is_german, translate
from resources.tools.source.rank import BEST_FUNCTION, best_function
from resources.tools.source.reach import read_script
from resources.tools.source.report import Frame, read_report
from resources.tools.source.text import Terms, stem
from resources.tools.source.weights import parse, shipped
from tests.resources.tools.source.conftest import Open
from viano_assets.errors import ConfigurationError

TREE = {
    "yard/gate.py": '''
"""Opens and closes the gate."""

class Gate:
    def lift(self, crate):
        check_weight(crate)
        return crate.weight + self.load

    def _settle(self, hinges):
        if not hinges:
            raise ValueError("gate %s has no hinges left" % self.name)
        return hinges
''',
    "yard/scale.py": '''
def check_weight(crate):
    return crate.weight

def tare(value):
    """Subtract the weight of the empty pallet."""
    return value - EMPTY
''',
    "yard/report.py": """
def print_table(rows, column_width=8):
    return rows
""",
    "tests/test_scale.py": """
from yard.scale import tare

def test_pallet_is_subtracted_twice():
    assert tare(5) == 3
""",
    "docs/usage.rst": "The printed columns of the summary come from ``print_table``.\n",
}


def _first(open_tree: Open, text: str) -> dict[str, object]:
    draft = open_tree(TREE).rank({"text": text}).drafts[1]
    lines = [json.loads(line) for line in draft.content.splitlines()]
    assert lines[0]["ranking"] == "symbols"
    assert [p.path for p in draft.places] == [line["path"] for line in lines[1:]]
    first: dict[str, object] = lines[1]
    return first


@pytest.mark.parametrize(
    ("text", "symbol", "signal"),
    [
        (
            "Crash\n\n- `yard/gate.py:7`, `lift`\n- `lib/other.py:3`, `run`\n- `TypeError: x`",
            "Gate.lift",
            "frames",
        ),
        ('Stops\n\n`ValueError: gate "north" has no hinges left`', "Gate._settle", "literals"),
        ("The output of `print_table` is cut off", "print_table", "identifiers"),
        ("The printed columns of the summary are wrong", "print_table", "docs"),
        ("Wrong sum\n\n```python\nfrom yard.scale import tare\nprint(tare(5))\n```\n", "tare", "direct"),
        ("The pallet is subtracted twice", "tare", "tests"),
        ("Since yesterday `--column-width 5` has no effect", "print_table", "terms"),
        ("Das Gewicht der leeren Palette wird nicht abgezogen, wenn der Wert zu klein ist", "tare", "text"),
    ],
)
def test_each_signal_leads_to_the_place(open_tree: Open, text: str, symbol: str, signal: str) -> None:
    first = _first(open_tree, text)
    assert first["symbol"] == symbol
    signals = first["signals"]
    assert isinstance(signals, dict)
    assert signals.get(signal, 0) > 0.3, signals


def test_tests_and_documentation_are_never_ranked_as_places(open_tree: Open) -> None:
    result = open_tree(TREE).rank({"text": "test_pallet_is_subtracted_twice fails, see docs/usage.rst"})
    assert {p.path for d in result.drafts for p in d.places} <= {p for p in TREE if p.startswith("yard/")}


def _signals(open_tree: Open, files: dict[str, str], text: str) -> dict[str, dict[str, float]]:
    """Return the signals of each ranked function, best first."""
    content = open_tree(files).rank({"text": text, "limit": 50}).drafts[1].content
    return {e["symbol"]: e["signals"] for e in map(json.loads, content.splitlines()[1:])}


COUNTED = """
class Crate:
    def __init__(self, count):
        self.count = count

    def __eq__(self, other):
        return self.count is other.count

    def __mul__(self, factor):
        return 1

    def stack(self):
        return self.count


dozen = Crate(12)
"""


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ("Two `Crate` of the same content do not compare equal", "Crate.__eq__"),
        ("Zwei `Crate` mit demselben Inhalt sind nicht gleich", "Crate.__eq__"),
        ("A negative number should be refused when the `Crate` is created", "Crate.__init__"),
    ],
)
def test_a_word_of_behaviour_leads_to_the_special_method_of_a_named_class(
    open_tree: Open, words: str, method: str
) -> None:
    found = _signals(open_tree, {"yard/crate.py": COUNTED}, words)
    assert found[method]["special"] > 0.9
    assert [name for name, signals in found.items() if "special" in signals] == [method]


def test_an_operator_on_an_imported_object_reaches_the_class_that_made_it(open_tree: Open) -> None:
    """The script never names the class: the module-level variable it imports was made by it."""
    other = "class Hook:\n    def __mul__(self, other):\n        return other\n"
    script = "from yard.crate import dozen\nprint(dozen * 2)\n"
    files = {"yard/crate.py": COUNTED, "yard/hook.py": other}
    found = _signals(open_tree, files, f"The number is lost\n\n```python\n{script}```\n")
    assert found["Crate.__mul__"]["direct"] == 1.0
    assert found.get("Hook.__mul__", {}).get("direct", 0.0) < 0.3


def test_the_words_of_a_quoted_message_say_little_for_a_helper_that_raises_for_many(open_tree: Open) -> None:
    """Its name and text agree with the report only because the report quotes what it raises."""
    check = (
        "def check_crate(crate):\n    if not crate:\n        raise TypeError('a crate must be supplied')\n"
    )
    text = "Adding fails\n\n`TypeError: a crate must be supplied`\n"
    weights = []
    for count in (1, 12):
        users = "".join(f"def use_{n}(crate):\n    check_crate(crate)\n" for n in range(count))
        files = {"yard/check.py": check, "yard/users.py": users}
        weights.append(_signals(open_tree, files, text)["check_crate"]["text"])
        shutil.rmtree(open_tree({}).root.parent / "cache")
    assert weights[0] == 1.0
    assert weights[1] < 0.6


def test_what_is_called_far_below_the_report_is_reached(open_tree: Open) -> None:
    script = "from yard.gate import Gate\nGate().lift(crate)"
    text = f"Weight is taken from the wrong place\n\n```python\n{script}\n```\n"
    result = open_tree(TREE).rank({"text": text})
    entries = [json.loads(line) for line in result.drafts[1].content.splitlines()[1:]]
    checked = next(e for e in entries if e["symbol"] == "check_weight")
    assert checked["signals"]["further"] > 0.2


def test_a_report_about_something_else_gives_no_confidence(open_tree: Open) -> None:
    text = "The kernel module refuses NVMe namespaces after a firmware downgrade"
    foreign = open_tree(TREE).rank({"text": text})
    own = open_tree(TREE).rank({"text": "`print_table` of yard/report.py ignores `column_width`"})

    def shape(content: str) -> dict[str, float]:
        found: dict[str, float] = json.loads(content.splitlines()[0])["shape"]
        return found

    assert shape(own.drafts[0].content)["confidence"] > 0.6
    assert shape(foreign.drafts[0].content)["confidence"] < 0.3
    assert shape(foreign.drafts[0].content)["known"] < shape(own.drafts[0].content)["known"]


def test_the_same_bytes_in_other_processes_with_other_hash_seeds(open_tree: Open) -> None:
    tree = open_tree(TREE)
    code = (
        "import sys; from pathlib import Path; from resources.tools.source import SourceTree;"
        "t = SourceTree(Path(sys.argv[1]), 'i', 'ab' * 32, Path(sys.argv[2]));"
        "r = t.rank({'text': 'The pallet weight of the gate is printed twice in the table'});"
        "print('\\n'.join(d.content for d in r.drafts))"
    )
    outputs = set()
    for seed in ("1", "2"):
        cache = tree.root.parent / f"cache{seed}"
        done = subprocess.run(
            [sys.executable, "-c", code, str(tree.root), str(cache)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


TRACEBACK = """Traceback (most recent call last):
  File "a/b.py", line 3, in run
    x
  File "/opt/c.py", line 9, in go
"""
BACKTRACE = """#0  0x00 in yard::Gate::lift (this=0x0) at src/gate.cpp:12
#1  0x01 in main () at src/main.cpp:3
"""


@pytest.mark.parametrize(
    ("text", "frames"),
    [
        (
            TRACEBACK,
            [Frame("a/b.py", 3, "run"), Frame("/opt/c.py", 9, "go")],
        ),
        (
            BACKTRACE,
            [Frame("src/main.cpp", 3, "main"), Frame("src/gate.cpp", 12, "yard::Gate::lift")],
        ),
        (
            "\tat org.yard.Gate.lift(Gate.java:5)\n\tat org.yard.Main.main(Main.java:1)\n",
            [Frame("org/yard/Main.java", 1, "main"), Frame("org/yard/Gate.java", 5, "lift")],
        ),
        (
            "innermost first:\n- `a.py:3`, `f`\n- `b.py:4`, `g`\n",
            [Frame("b.py", 4, "g"), Frame("a.py", 3, "f")],
        ),
        ("See https://example.org/x.html and version 1.2.3.", []),
    ],
)
def test_frames_are_read_outermost_first(text: str, frames: list[Frame]) -> None:
    assert read_report("t\n" + text).frames == frames


def test_a_script_knows_modules_types_and_its_own_names() -> None:
    lines = [
        "import yard as y",
        "from yard.gate import Gate",
        "g = Gate(1)",
        "g.lift(2)",
        "def own(): pass",
        "own()",
    ]
    script = read_script(["\n".join(lines)])
    found = {(u.name, u.owner) for u in script.uses}
    assert ("lift", "Gate") in found
    assert ("Gate", "gate") in found
    assert not any(u.name == "own" for u in script.uses)


@pytest.mark.parametrize(
    "words",
    [
        "escape escaped escapes escaping",
        "validate validation validator",
        "parse parser parsing",
        "retry retries retried",
        "decrypt decryption decrypted",
        "recursive recursion",
        "index indexes indexed",
        "skip skipped skipping",
    ],
)
def test_forms_of_a_word_share_a_stem(words: str) -> None:
    assert len({stem(w) for w in words.split()}) == 1


def test_identifiers_give_their_parts_and_themselves() -> None:
    assert Terms().of("retryDelay_seconds") == ["retr", "dela", "second", "=retrydelay_seconds"]


def test_german_words_and_compounds_are_translated() -> None:
    assert translate("Fensterklausel") == ("window", "clause")
    assert "cleanup" in translate("Aufräumschritt")
    assert translate("Xylophon") == ()
    assert is_german("Die Meldung wird nicht angezeigt, und der Dienst ist weg")
    assert not is_german("The message is not shown and the service is gone")


@pytest.mark.parametrize("piece", ["a.", "`", "x", "((", "a.py:1 ", "=", '"a', "a = ", "at a.", 'File "'])
def test_no_text_makes_the_reading_slow(piece: str) -> None:
    hostile = piece * (60_000 // len(piece))
    started = time.process_time()
    read_report(hostile)
    read_script([hostile])
    assert time.process_time() - started < 3


def test_weights_ship_with_the_corpus_they_come_from_and_a_damaged_file_is_named() -> None:
    assert len(shipped().corpus_sha256) == 64
    with pytest.raises(ConfigurationError, match="ranking_weights"):
        parse({"schema": "ranking-weights-v0"})


@pytest.mark.parametrize("shown", ["tree", "report"])
def test_the_digits_of_a_placeholder_change_no_rank(open_tree: Open, tmp_path: Path, shown: str) -> None:
    """Each package redacts with a key of its own; the same inputs rank the same all the same."""
    rankings = []
    for digits in ("9f2c01ab34", "0000face42"):
        secret = f"REDACTED_SECRET_{digits}"
        files = dict(TREE)
        files["yard/key.py"] = f'def key():\n    return "{secret if shown == "tree" else "none"}"\n'
        text = f"print_table fails, {secret if shown == 'report' else 'a face'}"
        drafts = open_tree(files).rank({"text": text}).drafts
        rankings.append([draft.content for draft in drafts])
        shutil.rmtree(tmp_path / "cache")
    assert rankings[0] == rankings[1]


def test_a_tree_without_code_ranks_nothing_and_breaks_nothing(open_tree: Open) -> None:
    for files in ({"a.log": "hello\n"}, {"data.bin": b"\x00\x01"}):
        result = open_tree(files).rank({"text": "It stops with hello"})
        assert all(len(draft.content.splitlines()) == 1 for draft in result.drafts)


def test_the_name_of_a_thread_is_no_clue(open_tree: Open) -> None:
    tree = open_tree(
        {
            "src/Main.java": "class Main {\n  static void main() {\n    new Dock().assign(0);\n  }\n}\n",
            "src/Dock.java": "class Dock {\n  void assign(Ship ship) {\n    ship.moor();\n  }\n}\n",
        }
    )
    rankings = [
        tree.rank({"text": f'Exception in thread "{name}" java.lang.Error: no mooring'}).drafts[1].content
        for name in ("main", "worker-7")
    ]
    assert rankings[0] == rankings[1]


def test_a_file_gains_from_its_best_function_in_the_measure_of_the_files() -> None:
    files, units = np.array([4.0, 3.0, 0.0]), np.array([0.1, 0.4, 0.2, 0.3])
    gained = best_function(files, units, np.array([0, 1, 1, 2]))
    assert gained.tolist() == pytest.approx([BEST_FUNCTION * 4.0 * share for share in (0.25, 1.0, 0.75)])
    assert best_function(files, np.zeros(4), np.array([0, 1, 1, 2])).tolist() == [0.0, 0.0, 0.0]
    assert best_function(np.zeros(0), np.zeros(0), np.zeros(0, dtype=int)).tolist() == []
