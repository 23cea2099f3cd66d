"""A headless Chromium driven over the DevTools protocol; what it needs is a Chromium and `websockets`."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--window-size=1500,1000",
)
PATIENCE_S = 180.0


def find_chromium() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(PATIENCE_S))
            if message.get("id") == self._number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result

    def open(self, url: str) -> None:
        """Navigate to a page."""
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def text(self) -> str:
        """Return the visible text of the page."""
        return str(self.evaluate("document.body ? document.body.innerText : ''"))

    def wait_for(self, *texts: str) -> str:
        """Wait until the page shows every text, and return all it shows."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            shown = self.text()
            if all(text in shown for text in texts):
                return shown
            time.sleep(0.5)
        raise AssertionError(f"the page never showed {texts}; it shows: {self.text()[:2_000]}")

    def click(self, pattern: str) -> None:
        """Click the last enabled button or link whose text matches a regular expression, with the mouse."""
        find = (
            "(() => { const all = [...document.querySelectorAll('button, a')].filter(e => !e.disabled && "
            f"new RegExp({json.dumps(pattern)}).test(e.innerText.trim())); if (!all.length) return null; "
            "const box = all[all.length - 1].getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        end = time.monotonic() + PATIENCE_S
        while (place := self.evaluate(find)) is None:
            if time.monotonic() > end:
                raise AssertionError(f"nothing to click for {pattern!r}: {self.text()[:2_000]}")
            time.sleep(0.5)
        time.sleep(0.5)
        x, y = self.evaluate(find) or place
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> int:
        """Write a PNG and return its size in bytes."""
        return path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(chromium: str, folder: Path) -> Iterator[Page]:
    """Start Chromium with a new profile in `folder` and yield its first tab."""
    with subprocess.Popen(
        [chromium, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            port = _port(folder / "DevToolsActivePort")
            targets = httpx.get(f"http://127.0.0.1:{port}/json", trust_env=False).json()
            page = next(target for target in targets if target["type"] == "page")
            with connect(page["webSocketDebuggerUrl"], max_size=1 << 26, proxy=None) as connection:
                yield Page(connection)
        finally:
            process.kill()


def _port(file: Path) -> int:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.2)
    raise AssertionError("Chromium opened no debugging port")
