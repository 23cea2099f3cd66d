"""Which files are code, in which language, and what part a file plays in a tree.

The roles are general habits of naming (tests, documentation, examples, vendored code); no rule names
anything of one project.
"""

from __future__ import annotations

import re
from enum import StrEnum

_EXTENSIONS = {
    "python": "py pyi pyx pxd pyw",
    "cpp": "cpp cc cxx c++ hpp hh hxx h ipp inl tpp",
    "c": "c",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "lua": "lua",
    "sql": "sql",
    "config": "ini cfg conf toml yaml yml properties env json dist in",
    "docs": "rst md txt adoc markdown",
    "text": "html htm xml xsl css sh bat ps1 cmake mk tmpl j2 jinja tcl rb pl php cs kt scala swift m vue",
}
_BY_EXTENSION = {ext: language for language, exts in _EXTENSIONS.items() for ext in exts.split()}
_DOC_NAMES = re.compile(
    r"^(readme|changes|changelog|history|news|authors|contributing|release)", re.IGNORECASE
)

CODE = frozenset(
    {"python", "cpp", "c", "java", "javascript", "typescript", "tsx", "go", "rust", "lua", "sql"}
)
"""Languages with symbols."""


class Role(StrEnum):
    """What a file is for; only `PRODUCT` files are ranked as places of a defect."""

    PRODUCT = "product"
    TEST = "test"
    DOCS = "docs"
    EXAMPLE = "example"
    VENDORED = "vendored"
    GENERATED = "generated"
    OTHER = "other"


def language_of(path: str) -> str | None:
    """Return the language of a path by its name, or None when it is not text that is indexed."""
    name = path.rpartition("/")[2]
    ext = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    found = _BY_EXTENSION.get(ext)
    if found is not None:
        return found
    if _DOC_NAMES.match(name):
        return "docs"
    if name in {"Makefile", "CMakeLists.txt", "Dockerfile"}:
        return "text"
    return None


_TEST_NAME = re.compile(
    r"^(test[_-]?.*|.*[_.-](test|tests|spec)|.*[a-z](Test|Tests|Spec)|conftest|tests?)\.\w+$"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TEST_SEGMENTS = _words("tests __tests__ spec specs unittests testdata test_data")
_TOP_TEST_SEGMENTS = _words("test testing testsuite test-data")
_DOC_SEGMENTS = _words("doc docs documentation site website changelog changes man")
_EXAMPLE_SEGMENTS = _words("example examples demo demos sample samples tutorial tutorials gallery galleries")
_TOP_EXAMPLE_SEGMENTS = _EXAMPLE_SEGMENTS | _words(
    "benchmark benchmarks asv_bench bin scripts tools release ci .github .circleci"
)
_VENDORED_SEGMENTS = _words(
    "vendor vendored _vendor third_party thirdparty 3rdparty extern external externals node_modules deps dep"
)
_VENDORED_NAME = re.compile(
    r"(?:^|/)c?extern[^/]*/|\.min\.\w+$|/static/(?:.*/)?[a-z]+[.-]?\d[^/]*\.js$|/jquery[^/]*\.js$"
)
_BANNER = re.compile(
    rb"^\W*(?:@generated\b|DO NOT (?:EDIT|MODIFY)\b"
    rb"|(?:a (?:lexical scanner|bison parser),? )?(?:this )?(?:(?:file|code|module|source) )?"
    rb"(?:is |was |has been )?(?:auto[- ]?|automatically |machine[- ])?generated (?:automatically )?"
    rb"(?:by|from)\b"
    rb"|(?:this )?(?:file|code|module|source) (?:is |was |has been )?"
    rb"(?:auto[- ]?|automatically |machine[- ])generated\b)",
    re.IGNORECASE | re.MULTILINE,
)
_BANNER_LINES = 12


def is_generated(data: bytes) -> bool:
    """Say whether the first lines of a file tell that a program wrote it: its faults are made elsewhere."""
    return _BANNER.search(b"\n".join(data[:1500].split(b"\n")[:_BANNER_LINES])) is not None


_SETUP_NAMES = _words("setup.py conf.py noxfile.py")


def role_of(path: str, language: str | None) -> Role:
    """Say what part the file plays, from its path alone."""
    *outer, name = path.split("/")
    folders = [s.lower() for s in outer]
    within = set(folders)
    top = folders[0] if folders else ""
    role = Role.PRODUCT if language in CODE or language == "config" else Role.OTHER
    if within & _VENDORED_SEGMENTS or "packages" in folders[1:] or _VENDORED_NAME.search(path.lower()):
        role = Role.VENDORED
    elif name.endswith(".pyi") or "lc_messages" in within:
        role = Role.OTHER
    elif (
        within & _TEST_SEGMENTS
        or top in _TOP_TEST_SEGMENTS
        or "src/test/" in path.lower()
        or (language in CODE and _TEST_NAME.match(name) and not _product_despite_name(folders, name))
    ):
        role = Role.TEST
    elif top in _DOC_SEGMENTS or language == "docs":
        role = Role.DOCS
    elif top in _TOP_EXAMPLE_SEGMENTS or within & _EXAMPLE_SEGMENTS or (not folders and name in _SETUP_NAMES):
        role = Role.EXAMPLE
    return role


def _product_despite_name(folders: list[str], name: str) -> bool:
    """`tests.py` and `test.py` deep in a package are product code as often as not; a prefix is not."""
    stem = name.rsplit(".", 1)[0].lower()
    return stem in {"test", "tests"} and len(folders) > 1 and folders[-1] not in {"test", "tests"}
