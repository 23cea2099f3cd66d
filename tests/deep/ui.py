"""`make test-deep NAME=ui`: the Dagster UI in a real headless Chromium, from graph to checked partition.

Opens the asset graph of `viano ui`, materialises the one partition by clicking, and looks at its metadata
and its checks. Screenshots go to `VIANO_UI_SHOTS` when it is set. Without a Chromium every figure is null.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deep._browser import PATIENCE_S, Page, browser, find_chromium
from tests.deep._daemon_ui import answers, free_port
from tests.support.commands import COMMAND
from tests.support.graph import small_case
from tests.support.processes import started, wait_until
from viano_assets.assets.specs import ASSET_OF_PHASE, CASE, CHECKS, GROUP
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import Phase

CASE_ID = "CRANE-17"
LOCATION = "__repository__@viano_assets.definitions"
SHOWN = 8
"""The graph shortens long names in their middle; so many characters of each are always there."""

DIAGNOSIS = ASSET_OF_PHASE[Phase.DIAGNOSIS]


@contextmanager
def _serving(root: Path, home: Path) -> Iterator[str]:
    port = free_port()
    command = [*COMMAND, "ui", "--home", str(home), "--port", str(port)]
    with started(command, f"ui-{root.name}", root / "said") as process:
        try:
            wait_until(lambda: answers(port, process), "viano ui answers", PATIENCE_S)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)


class _Shots:
    def __init__(self, page: Page) -> None:
        folder = os.environ.get("VIANO_UI_SHOTS")
        self._folder = Path(folder) if folder else None
        self._page = page

    def take(self, name: str) -> None:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._page.screenshot(self._folder / f"{name}.png")


def _look(page: Page, url: str, home: Path, key: str) -> dict[str, object]:
    shots = _Shots(page)
    assets = [asset.to_user_string()[:SHOWN] for asset in (CASE, *ASSET_OF_PHASE.values())]
    page.open(f"{url}/locations/{LOCATION}/asset-groups/{GROUP}/lineage")
    graph = page.wait_for(*assets)
    shots.take("graph")
    page.click(r"^Materialize")
    page.wait_for("Partition selection")
    page.click(r"^All$")
    page.wait_for("1 partition")
    shots.take("dialog")
    page.click(r"^Launch (\d+ )?(run|backfill)")
    wait_until(lambda: _diagnosed(home), "the clicked run reached a diagnosis", 2 * PATIENCE_S)
    shown = key.replace("@", "%40")
    page.open(f"{url}/assets/{DIAGNOSIS.to_user_string()}?partition={shown}&view=partitions")
    partition = page.wait_for(key, "verdict", "where", "spend")
    shots.take("partition")
    names = [name for name, (asset, _) in CHECKS.items() if asset == DIAGNOSIS]
    page.open(f"{url}/assets/{DIAGNOSIS.to_user_string()}?view=checks")
    checks = page.wait_for(*names, key)
    shots.take("checks")
    return {
        "assets_shown": sum(asset in graph for asset in assets),
        "materialised_by_clicking": 1,
        "metadata_shown": sum(name in partition for name in ("summary", "verdict", "where", "spend")),
        "checks_shown": sum(name in checks for name in names),
    }


def _diagnosed(home: Path) -> bool:
    return CheckpointStore(home).latest(CASE_ID).pointer("diagnosis") is not None


def main() -> dict[str, object]:
    """Look at the UI; every figure is null where no Chromium is installed."""
    chromium = find_chromium()
    if chromium is None:
        sys.stderr.write("no Chromium here (Debian: apt-get install chromium); nothing was looked at\n")
        return dict.fromkeys(("assets_shown", "materialised_by_clicking", "metadata_shown", "checks_shown"))
    with tempfile.TemporaryDirectory(prefix="viano-ui-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        key = small_case(root / "home", CASE_ID)
        with _serving(root, root / "home") as url, browser(chromium, root / "profile") as page:
            try:
                return _look(page, url, root / "home", key)
            except AssertionError:
                _Shots(page).take("failed")
                raise
