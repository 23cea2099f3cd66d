"""What people see and what the data holds lead to code: catalogues of messages, names, history."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from resources.tools.source.catalogues import Entry, dictionary, language_tag, read
from resources.tools.source.history import Reported, changes, resolve
from resources.tools.source.languages import Role
from resources.tools.source.reader import FileRow
from tests.resources.tools.source.conftest import Open

CODE = {
    "port/berth.py": """
def release(berth):
    berth.flash(_("The berth could not be released"))


def reserve(berth):
    berth.flash(_("Reserve a place"))
""",
    "port/crane.py": """
def swing(crane):
    crane.tell("crane.arm.blocked")


def load_plan(base):
    return base.rows("SELECT * FROM lifts WHERE day = 1")


def idle(crane):
    return crane.off
""",
}
CATALOGUES = {
    "port/locale/de/LC_MESSAGES/port.po": """
msgid ""
msgstr "Language: de\\n"

#: port/berth.py:3
msgid "The berth could not be released"
msgstr "Der Liegeplatz ließ sich "
"nicht freigeben"
""",
    "web/messages_de.properties": "crane.arm.blocked = Der Ausleger ist gesperrt\\u0021\n",
    "web/i18n/de.json": '{"crane": {"arm": {"blocked": "Der Ausleger ist gesperrt"}}}',
    "web/locales/de.yml": 'de:\n  crane:\n    arm:\n      blocked: "Der Ausleger ist gesperrt"\n',
    "app/res/values-de/strings.xml": (
        '<resources><string name="crane.arm.blocked">Der <b>Ausleger</b> ist gesperrt</string></resources>'
    ),
    "app/Texts.de.resx": (
        '<root><data name="crane.arm.blocked" xml:space="preserve">'
        "<value>Der Ausleger ist gesperrt</value></data></root>"
    ),
    "app/translations/app_de.ts": (
        '<TS><context><message><location filename="../port/berth.py" line="3"/>'
        "<source>The berth could not be released</source>"
        "<translation>Der Liegeplatz ließ sich nicht freigeben</translation></message></context></TS>"
    ),
}


def _signals(
    open_tree: Open, files: dict[str, str], text: str, **more: object
) -> dict[str, dict[str, float]]:
    content = open_tree(files).rank({"text": text, "limit": 50, **more}).drafts[1].content
    return {e["symbol"]: e["signals"] for e in map(json.loads, content.splitlines()[1:])}


@pytest.mark.parametrize("path", sorted(CATALOGUES))
def test_a_text_of_the_interface_is_followed_through_the_catalogue(open_tree: Open, path: str) -> None:
    berth = "Der Liegeplatz" in CATALOGUES[path]
    said = "Der Liegeplatz ließ sich nicht freigeben" if berth else "Der Ausleger ist gesperrt"
    text = f"Meldung ohne Grund\n\nEs kommt die Meldung „{said}“, und das ist nicht richtig.\n"
    found = _signals(open_tree, {**CODE, path: CATALOGUES[path]}, text)
    place = "release" if berth else "swing"
    assert found[place]["shown"] > 0.5
    assert [name for name, signals in found.items() if "shown" in signals] == [place]
    assert next(iter(found)) == place


def test_a_catalogue_of_another_language_is_not_read(open_tree: Open) -> None:
    files = {**CODE, "port/locale/fr/port.po": CATALOGUES["port/locale/de/LC_MESSAGES/port.po"]}
    found = _signals(open_tree, files, "Fehler\n\n„Der Liegeplatz ließ sich nicht freigeben“ ist nicht wahr")
    assert not any("shown" in signals for signals in found.values())


@pytest.mark.parametrize(
    ("path", "tag"),
    [
        ("a/locale/de/LC_MESSAGES/a.po", "de"),
        ("a/messages_de_AT.properties", "de"),
        ("a/values-de/strings.xml", "de"),
        ("a/i18n/en.json", "en"),
        ("a/messages.properties", ""),
    ],
)
def test_the_language_of_a_catalogue_is_read_from_its_path(path: str, tag: str) -> None:
    assert language_tag(path) == tag


def test_words_are_translated_by_the_tree_itself() -> None:
    entries = [
        Entry("Der Poller ist besetzt", "The bollard is taken", ()),
        Entry("Poller löschen", "Delete bollard", ()),
        Entry("Der Kran ist besetzt", "The crane is taken", ()),
    ]
    found = dictionary(entries, ["Poller", "besetzt", "Wetter"])
    assert found == {"poller": ("bollard",), "besetzt": ("taken",)}


@pytest.mark.parametrize(
    ("ending", "piece"),
    [
        ("ts", "<source>a</source>"),
        ("ts", '<location filename="a" line="1"/>'),
        ("resx", '<data name="a" '),
        ("xml", '<string name="a">'),
        ("po", 'msgid "a"\n'),
        ("properties", "a\\\n"),
        ("yml", " " * 40),
        ("json", "["),
    ],
)
def test_no_catalogue_makes_the_reading_slow(tmp_path: Path, ending: str, piece: str) -> None:
    target = tmp_path / f"a.{ending}"
    target.write_text(piece * (400_000 // len(piece)), encoding="utf-8")
    row = FileRow(0, target.name, "", Role.OTHER, target.stat().st_size, 1, indexed=False)
    started = time.process_time()
    read(tmp_path, [row])
    assert time.process_time() - started < 5


def test_a_name_found_in_data_leads_to_the_code_that_writes_it(open_tree: Open) -> None:
    """`lifts` is a common word; as the name of a table it is looked for in the strings of the code."""
    found = _signals(open_tree, CODE, "The plan is empty", names=["lifts"])
    assert found["load_plan"]["entities"] == 1.0
    assert next(iter(found)) == "load_plan"
    assert not any("entities" in s for s in _signals(open_tree, CODE, "The plan is empty").values())


def _git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(root), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_files_changed_lately_with_the_words_of_the_report_gain(open_tree: Open) -> None:
    """The commit after the reported revision is the fix; it must not be looked at."""
    root = open_tree({"port/berth.py": "def release():\n    return 1\n"}).root
    _git(root, "init", "-q")
    _git(root, "add", ".")
    _git(root, "commit", "-q", "-m", "Mooring lines are released by tonnage")
    reported = _git(root, "rev-parse", "HEAD")
    (root / "port/crane.py").write_text("def swing():\n    return 2\n", encoding="utf-8")
    _git(root, "add", ".")
    _git(root, "commit", "-q", "-m", "Fix mooring by tonnage")
    assert [c.paths for c in changes(root, 9, resolve(root, Reported((reported,))))] == [("port/berth.py",)]
    assert changes(root, 9, resolve(root, None))[0].message == "Fix mooring by tonnage"
    assert changes(root / "port", 9, resolve(root / "port", None)) == []
    tree = open_tree({})
    content = tree.rank({"text": "The tonnage is ignored when mooring"}).drafts[0].content
    found = {e["path"]: e["signals"] for e in map(json.loads, content.splitlines()[1:])}
    assert found["port/crane.py"]["history"] == 1.0
    assert 0.3 < found["port/berth.py"]["history"] < 1.0
