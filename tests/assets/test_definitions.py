"""The code location loads clean, and metadata is safe for a page."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg

from tests.support.processes import ROOT
from viano_assets.assets.metadata import MAX_BYTES, to_metadata


def test_the_workspace_validates_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=ROOT,
        env=os.environ | {"DAGSTER_HOME": str(tmp_path), "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Validation successful for code location viano" in said
    assert [line for line in said.splitlines() if "Warning: " in line and not _known(line)] == []


def test_the_code_location_loads_no_heavy_library() -> None:
    """The process of every run starts with it; what only a corpus needs once doubled that time."""
    script = "import sys, viano_assets.definitions; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"duckdb", "pyarrow", "scipy", "matplotlib"}.isdisjoint(done.stdout.split())


def _known(line: str) -> bool:
    return "SupersessionWarning" in line or "site-packages" in line.partition("Warning: ")[0]


def test_no_data_is_said_and_never_breaks_the_page() -> None:
    """One NaN once blanked the whole page."""
    entries = to_metadata({"bin": {"rate": math.nan, "n": 2**70}, "rate": math.inf, "none": None})
    document = entries["bin"]
    assert isinstance(document, dg.JsonMetadataValue)
    assert json.dumps(document.value, allow_nan=False) == json.dumps({"rate": "no data", "n": str(2**70)})
    assert entries["rate"].value == "no data"
    assert "none" not in entries


def test_text_of_a_case_is_cut_and_without_controls() -> None:
    entries = to_metadata({"text": "a\x00b\ud83d" + "ä" * MAX_BYTES, "link": "javascript:alert(1)"})
    text = entries["text"]
    assert isinstance(text, dg.TextMetadataValue)
    assert text.text is not None
    assert len(text.text.encode()) <= MAX_BYTES
    assert text.text.startswith("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}")
    assert isinstance(entries["link"], dg.TextMetadataValue)
    assert isinstance(to_metadata({"link": "https://example.org/1"})["link"], dg.UrlMetadataValue)
