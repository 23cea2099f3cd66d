"""An absent definition is a complete absence only when its name stands nowhere unexplained."""

from __future__ import annotations

from typing import Any

import pytest

from tests.resources.tools.source.conftest import Open
from viano_assets.evidence.model import Completeness, ToolResult

TORN = """void yard::Gate::OnShut(int n)
{
}
#if BUILD > 5
void yard::Gate::OnOpen(int n)
{
    if (n == 3) {
#else
void yard::Gate::OnLift(int n)
{
    if (n == 4) {
#endif
        shut();
    }
}
"""
FILES = {
    "a.cpp": TORN,
    "b.cpp": "namespace yard {\nclass Crane {\n  static constexpr int kMost = 77;\n"
    "  DECLARE_HOOK(OnSwing)\n};\n"
    "auto turn = [](int a) { return a; };\nconstexpr unsigned MASK = 0x40;\n}\n"
    "SCRIPT_FN(bool, OnDrop)(int a)\n{\n  return a == 1;\n}\n",
    "J.java": "class J { static final int JC = 4248; enum K { A(4249), B } }\n",
    "c.js": "exports.pack = function () {};\nconst O = { 'seal': () => 1, WIDE: 4250 };\n",
    "d.cs": "class Dock { void Moor() {} const int Deep = 4251; }\n",
    "e.php": "<?php\nfunction haul() {}\ndefine('LOAD', 4252);\n",
    "f.rb": "def weigh\n  1\nend\n",
    "g.kt": "fun stow(): Int { return 1 }\n",
    "h.sh": "tow() { echo 1; }\n",
    "i.swift": "func lash() {}\n",
    "k.zig": "pub fn drift() void {}\n",
}
HIDDEN = (
    "OnOpen yard::Gate::OnOpen kMost OnSwing turn MASK OnDrop JC pack seal Moor Dock.Moor haul weigh "
    "stow tow lash drift"
)


def _places(result: ToolResult) -> list[tuple[str | None, int | None]]:
    return [(p.path, p.line_start) for p in result.drafts[0].places]


@pytest.mark.parametrize("name", HIDDEN.split())
def test_a_name_that_stands_where_nothing_was_read_is_no_complete_absence(open_tree: Open, name: str) -> None:
    result = open_tree(FILES).symbol({"name": name})
    assert result.empty
    assert result.completeness is Completeness.PARTIAL
    assert "read as no definition" in str(result.cause)
    assert len(_places(result)) == 1
    assert result.scope["stands_at"][0]["text"]


def test_files_that_no_grammar_reads_are_named(open_tree: Open) -> None:
    assert ".cs" in str(open_tree(FILES).symbol({"name": "Moor"}).cause)


USES: dict[str, bytes | str] = {
    "u.cpp": "class Later;\nvoid hoist(int n);\n// OnAbsent was here\nint f(Hook* h) {\n"
    '  log("OnAbsent");\n  h->OnAbsent(3);\n  h->inner.OnAbsent();\n  if (x == OnAbsent) return OnAbsent;\n'
    "  hoist(1);\n  int y = hoist(2);\n  return Later::made();\n}\n",
    "u.py": "from yard import OnAbsent\n\n\n@OnAbsent\ndef g(door):\n    '''OnAbsent in words'''\n"
    "    OnAbsent(3)\n    return door.OnAbsent\n",
    "u.md": "OnAbsent is explained here.\n",
    "u.conf": "hook = OnAbsent\n",
    "logo.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\x00\x00\x00 OnAbsent \x00\x00\x01\x02\x03\x04",
}


@pytest.mark.parametrize("name", ["OnAbsent", "Ns::Bob::OnAbsent", "hoist", "Later", "nowhere"])
def test_mere_uses_leave_the_absence_complete(open_tree: Open, name: str) -> None:
    result = open_tree(USES).symbol({"name": name})
    assert (result.empty, result.completeness, result.cause) == (True, Completeness.COMPLETE, None)


def test_a_look_that_was_cut_is_no_complete_absence(open_tree: Open) -> None:
    result = open_tree({"u.cpp": "void f(Hook* h) {\n" + "  h->OnAbsent(3);\n" * 600 + "}\n"}).symbol(
        {"name": "OnAbsent"}
    )
    assert (result.empty, result.completeness) == (True, Completeness.PARTIAL)
    assert "cut: limit" in str(result.cause)


def test_a_definition_of_another_owner_explains_its_own_place(open_tree: Open) -> None:
    tree = open_tree({"a.cpp": "int Alice::OnOpen() { return 1; }\nint Carol::OnOpen() { return 2; }\n"})
    absent = tree.symbol({"name": "Bob::OnOpen"})
    assert (absent.empty, absent.completeness) == (True, Completeness.COMPLETE)
    assert len(tree.symbol({"name": "OnOpen"}).drafts[0].places) == 2


def test_what_was_found_is_partial_where_another_definition_was_not_read(open_tree: Open) -> None:
    found = open_tree({"a.cpp": TORN, "b.cpp": "void yard::Wall::OnOpen(int n) {}\n"}).symbol(
        {"name": "OnOpen"}
    )
    assert [p.path for p in found.drafts[0].places] == ["b.cpp"]
    assert found.completeness is Completeness.PARTIAL
    assert "a.cpp:5" in str(found.cause)


@pytest.mark.parametrize(
    ("arguments", "completeness"),
    [
        ({"path": "a.cpp", "symbol": "OnOpen"}, Completeness.PARTIAL),
        ({"path": "a.cpp", "symbol": "OnSwing"}, Completeness.COMPLETE),
        ({"path": "d.cs", "symbol": "Moor"}, Completeness.PARTIAL),
        ({"path": "d.cs", "symbol": "OnSwing"}, Completeness.COMPLETE),
    ],
)
def test_reading_a_function_that_was_not_read_as_one(
    open_tree: Open, arguments: dict[str, Any], completeness: Completeness
) -> None:
    result = open_tree(FILES).read(arguments)
    assert (result.empty, result.completeness) == (True, completeness)


@pytest.mark.parametrize(
    ("files", "completeness", "cause"),
    [
        ({"x.cs": "class A {}\n"}, Completeness.UNAVAILABLE, "no grammar"),
        ({"x.js": "exports.pack = 1;\n"}, Completeness.PARTIAL, "no definition"),
        ({"x.js": "// nothing here\n"}, Completeness.COMPLETE, ""),
        ({"x.cpp": TORN + "int whole() { return 1; }\n"}, Completeness.PARTIAL, "cannot read line"),
        ({"x.cpp": "int whole() { return 1; }\n"}, Completeness.COMPLETE, ""),
    ],
)
def test_an_outline_says_what_it_cannot_read(
    open_tree: Open, files: dict[str, str], completeness: Completeness, cause: str
) -> None:
    result = open_tree(files).outline({"path": next(iter(files))})
    assert result.completeness is completeness
    assert cause in str(result.cause)


@pytest.mark.parametrize("value", ["4248", "4249", "4250", "4251", "4252", "0x109B"])
def test_a_value_that_may_be_given_a_name_is_no_complete_absence(open_tree: Open, value: str) -> None:
    result = open_tree(FILES).constant({"value": value})
    assert result.empty
    assert result.completeness is Completeness.PARTIAL
    assert len(_places(result)) == 1


@pytest.mark.parametrize(
    ("code", "completeness"),
    [
        ("int f(int a) { return a == 4300 ? g[4300] : 0; }\n", Completeness.COMPLETE),
        ("const int A = sizeof(int);\n", Completeness.COMPLETE),
        ("// 4300 = the answer\n", Completeness.COMPLETE),
        ("#define B (OTHER << 3)\n", Completeness.PARTIAL),
        ("enum E { X = OTHER + 1, Y };\n", Completeness.PARTIAL),
        ("const int A = f(4299 + 1), B{4300};\n", Completeness.PARTIAL),
    ],
)
def test_a_value_that_could_not_be_worked_out_may_be_the_one(
    open_tree: Open, code: str, completeness: Completeness
) -> None:
    result = open_tree({"a.cpp": code}).constant({"value": "4300"})
    assert (result.empty, result.completeness) == (True, completeness)


def test_a_code_file_that_is_no_text_is_named(open_tree: Open) -> None:
    tree = open_tree(
        {"a.cpp": b"int f\x00\x01\x02\x03\x04\x05\x06\x00" * 40, "b.cpp": "int g() { return 1; }\n"}
    )
    result = tree.symbol({"name": "hidden"})
    assert (result.empty, result.completeness) == (True, Completeness.PARTIAL)
    assert "a.cpp" in str(result.cause)


def test_a_stray_nul_hides_no_code(open_tree: Open) -> None:
    tree = open_tree({"a.cpp": b"int f() { return 1; }\n\x00\nint stray() { return 2; }\n" + b"// x\n" * 30})
    assert [p.line_start for p in tree.search({"pattern": "stray"}).drafts[0].places] == [3]
    assert _places(tree.symbol({"name": "stray"})) == [("a.cpp", 3)]
