"""Reading, symbols, outlines, constants and history."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from resources.tools.source.constants import evaluate
from resources.tools.source.parse import symbols_of
from tests.resources.tools.source.conftest import Open
from viano_assets.evidence.model import Completeness, EvidenceRecord, ToolResult

PYTHON = b"""class Crate:
    limit = 3

    @property
    def full(self):
        def inner():
            pass
        return inner

def seal():
    print 'old'
"""
CPP = b"""namespace yard {
class Crate {
 public:
  bool full() const { return n > 3; }
  Crate& operator=(const Crate& o) { return *this; }
  ~Crate() {}
};
enum Color { RED, GREEN };
}
int yard::Crate::size(int a) { return a; }
template<class T> T pick(T a) { return a; }
#define LIMIT 4
"""
JAVA = b"""class Crate {
  Crate(int n) {}
  boolean full() { return true; }
  interface Lid { void open(); }
}
"""
JAVASCRIPT = b"""export function seal(a) {}
const pack = (b) => b;
class Crate { full() { return 1 } }
"""
TYPESCRIPT = b"""interface Lid { open(): void }
abstract class Crate { full(): boolean { return true } }
"""
GO = b"""package p
type Crate struct{}
func (c *Crate) Full() bool { return true }
func Seal() {}
"""
RUST = b"""mod yard { pub struct Crate; impl Crate { fn full(&self) -> bool { true } } }
fn seal() {}
"""
LUA = b"""local function seal() end
function Crate.full(self) end
function Crate:open() end
"""
SQL = b"""CREATE TABLE IF NOT EXISTS `crate` (id INT);
create procedure seal()
BEGIN
 SELECT 1;
END;
"""
C = b"""static int *find(int k) {
  return 0;
}
struct row { int a; };
"""
_CPP_NAMES = (
    "yard yard::Crate yard::Crate::full yard::Crate::operator= yard::Crate::~Crate yard::Color "
    "yard::Color::RED yard::Color::GREEN yard::Crate::size pick LIMIT"
)
SAMPLES = {
    "python": (PYTHON, "Crate Crate.limit Crate.full Crate.full.inner seal"),
    "cpp": (CPP, _CPP_NAMES),
    "c": (C, "find row"),
    "java": (JAVA, "Crate Crate.Crate Crate.full Crate.Lid Crate.Lid.open"),
    "javascript": (JAVASCRIPT, "seal pack Crate Crate.full"),
    "typescript": (TYPESCRIPT, "Lid Crate Crate.full"),
    "go": (GO, "Crate Crate.Full Seal"),
    "rust": (RUST, "yard yard::Crate yard::Crate yard::Crate::full seal"),
    "lua": (LUA, "seal Crate.full Crate.open"),
    "sql": (SQL, "crate seal"),
}


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_definitions_have_qualified_names(language: str) -> None:
    data, expected = SAMPLES[language]
    assert [s.qualname for s in symbols_of(data, language)] == expected.split()


def test_python_tests_are_cut_by_indentation_like_the_grammar_cuts_them() -> None:
    data = (
        b"class TestCrate:\n    def test_full(\n        self,\n    ):\n        assert 1\n\n"
        b"    def test_two(self):\n"
        b"        x = '''\n  def no(): pass\n'''\n\ndef helper():\n    return 1\n\nVALUE = 3\n"
    )
    quick = {s.qualname: (s.start, s.end) for s in symbols_of(data, "python", quick=True)}
    exact = {s.qualname: s.start for s in symbols_of(data, "python") if s.kind != "variable"}
    for name in ("TestCrate", "TestCrate.test_full", "TestCrate.test_two", "helper"):
        assert quick[name][0] == exact[name]
    assert b"VALUE" not in data[slice(*quick["helper"])]


def _record(result: ToolResult, number: int) -> EvidenceRecord:
    draft = result.drafts[number]
    return EvidenceRecord(
        evidence_id="E1",
        tool=result.tool,
        arguments=result.arguments,
        scope=result.scope,
        completeness=draft.completeness,
        content=draft.content,
        content_sha256="0" * 64,
        provenance=draft.provenance,
        places=draft.places,
        bytes=len(draft.content),
    )


def test_decorators_belong_to_what_stands_right_below_them() -> None:
    text = b"@one\nclass A:\n    def f(self):\n        pass\n\n"
    text += b"    @two\n    @three\n    def g(self):\n        pass\n"
    found = {s.name: text[s.lead : s.start].split() for s in symbols_of(text, "python")}
    assert found == {"A": [b"@one"], "f": [], "g": [b"@two", b"@three"]}
    plain = text.replace(b"    @two\n    @three\n", b"")
    found = {s.name: plain[s.lead : s.start].split() for s in symbols_of(plain, "python")}
    assert found == {"A": [b"@one"], "f": [], "g": []}


def test_a_function_is_read_whole_with_its_conditions(open_tree: Open) -> None:
    head = "#if BUILD > 3\n#ifdef FAST\nint slow() { return 0; }\n#else\n"
    text = head + "int quick() {\n  return 1;\n}\n#endif\n#endif\n"
    tree = open_tree({"src/a.cpp": text})
    result = tree.read({"path": "src/a.cpp", "symbol": "quick"})
    draft = result.drafts[0]
    assert draft.content == "int quick() {\n  return 1;\n}"
    assert draft.provenance.preprocessor == ("#if BUILD > 3", "#else of #ifdef FAST")
    assert draft.places[0].symbol == "quick"
    assert tree.still_holds(_record(result, 0)) is None
    (tree.root / "src/a.cpp").write_text(text.replace("return 1", "return 2"))
    tree.close()
    reopened = open_tree({})
    assert reopened.still_holds(_record(result, 0)) is not None


def test_reading_is_capped_and_says_so(open_tree: Open) -> None:
    tree = open_tree({"a.py": "".join(f"x{n} = {n}\n" for n in range(1000)), "b.txt": "z" * 50_000})
    long = tree.read({"path": "a.py", "line_start": 1, "line_end": 900})
    assert (long.completeness, long.cause) == (Completeness.TRUNCATED, "line_cap")
    assert long.drafts[0].places[0].line_end == 200
    wide = tree.read({"path": "b.txt"})
    assert (wide.completeness, wide.cause) == (Completeness.TRUNCATED, "byte_cap")
    assert len(wide.drafts[0].content) <= 8_000
    past = tree.read({"path": "a.py", "line_start": 5_000})
    assert past.empty
    assert past.cause == "past the end"
    missing = tree.read({"path": "c.py"})
    assert missing.empty
    assert missing.completeness is Completeness.COMPLETE


def test_a_symbol_prefers_product_code_and_comes_with_its_lines(open_tree: Open) -> None:
    tree = open_tree(
        {
            "tests/test_a.py": "def seal():\n    return 'test'\n",
            "pkg/z.py": "class A:\n    def seal(self):\n        pass\n",
        }
    )
    result = tree.symbol({"name": "seal"})
    assert [(p.path, p.symbol) for p in result.drafts[0].places] == [
        ("pkg/z.py", "A.seal"),
        ("tests/test_a.py", "seal"),
    ]
    assert result.drafts[1].content == "    def seal(self):\n        pass"
    qualified = tree.symbol({"name": "A.seal"})
    assert [p.symbol for p in qualified.drafts[0].places] == ["A.seal"]
    assert tree.symbol({"name": "nothing_here"}).empty
    outline = tree.outline({"path": "pkg/z.py"})
    assert [json.loads(line)["symbol"] for line in outline.drafts[0].content.splitlines()] == ["A", "A.seal"]


def test_constants_are_found_by_value_through_expressions_enums_and_flags(open_tree: Open) -> None:
    tree = open_tree(
        {
            "a.h": "#define CRATE_MAX 0x10\nenum Kind {\n  A,\n  B, // two\n  C = 16,\n  D\n};\n"
            "enum Flag { F_ONE = 1, F_TWO = 1 << 1, F_FOUR = 4, F_ALL = F_ONE | F_TWO | F_FOUR };\n",
            "b.py": "LIMIT = 4 * 4\nNAME = 'open'\n",
            "c.conf": "port = 16\n",
        }
    )
    rows = [json.loads(x) for x in tree.constant({"value": "16"}).drafts[0].content.splitlines()]
    assert {(r["path"], r["line"], r["name"]) for r in rows} == {
        ("a.h", 1, "CRATE_MAX"),
        ("a.h", 5, "Kind::C"),
        ("b.py", 1, "LIMIT"),
        ("c.conf", 1, "port"),
    }
    names = [json.loads(x)["name"] for x in tree.constant({"value": "17"}).drafts[0].content.splitlines()]
    assert names == ["Kind::D"]
    bits = [json.loads(x) for x in tree.constant({"value": "6"}).drafts[0].content.splitlines()]
    assert [(b["name"], b["how"]) for b in bits] == [("Flag::F_TWO", "bit"), ("Flag::F_FOUR", "bit")]
    text = [json.loads(x)["name"] for x in tree.constant({"value": "open"}).drafts[0].content.splitlines()]
    assert text == ["NAME"]
    assert tree.constant({"value": "123456"}).empty


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 << 4 | 1", 17),
        ("(2 + 3) * 2", 10),
        ("~0", -1),
        ("0xFFu", 255),
        ("A + 1", 8),
        ("f(3)", None),
        ("9 /", None),
    ],
)
def test_constant_expressions_follow_c(expression: str, value: int | None) -> None:
    assert evaluate(expression, {"A": 7}) == value


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_history_finds_the_commit_and_never_looks_past_the_revision(open_tree: Open, tmp_path: Path) -> None:
    tree = open_tree({"a.py": "x = 1\n"})
    assert tree.history({"text": "seal"}).completeness is Completeness.UNAVAILABLE
    people = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**people, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=tree.root, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    first = git("rev-parse", "HEAD")
    (tree.root / "a.py").write_text("x = 1\nseal()\n")
    git("commit", "-qam", "add the seal")
    evil = tree.root / ".git" / "config"
    evil.write_text(
        evil.read_text() + f"[core]\n\tpager = touch {tmp_path}/owned\n\tfsmonitor = touch {tmp_path}/owned\n"
    )
    found = tree.history({"text": "seal"})
    assert "add the seal" in found.drafts[0].content
    assert "+seal()" in found.drafts[0].content
    assert not (tmp_path / "owned").exists()
    from resources.tools.source import SourceTree

    earlier = SourceTree(tree.root, "i", "ef" * 32, tmp_path / "c3", revision=first)
    assert earlier.history({"text": "seal"}).empty
