"""`viano ui` and the signals that end it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.commands import COMMAND
from tests.support.graph import small_case
from tests.support.processes import marked, started, wait_until

FEWEST = 4
"""Viano, `dagster dev`, its web server and its daemon; code servers come on top."""

PATIENCE_S = 300.0


def answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the web server is up.

    Raises:
        AssertionError: the command ended by itself.
    """
    if process.poll() is not None:
        raise AssertionError(f"viano ui exited {process.returncode}")
    try:
        reply = httpx.get(f"http://127.0.0.1:{port}/server_info", trust_env=False)
    except httpx.HTTPError:
        return False
    return reply.status_code == 200


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def stops(root: Path) -> dict[str, object]:
    """Start the UI, stop it and count what is left, once per signal."""
    home = root / "home"
    small_case(home, "A-1")
    left = 0
    stopped = 0
    for number in (signal.SIGTERM, signal.SIGINT):
        mark, port = f"{number.name}-{root.name}", free_port()
        command = [*COMMAND, "ui", "--home", str(home), "--port", str(port)]
        with started(command, mark, root / "said") as process:
            wait_until(lambda p=port, q=process: answers(p, q), "the UI answers", PATIENCE_S)  # type: ignore[misc]
            wait_until(lambda m=mark: len(marked(m)) >= FEWEST, "its processes are there", PATIENCE_S)  # type: ignore[misc]
            before = len(marked(mark))
            process.send_signal(number)
            status = process.wait(PATIENCE_S)
            after = marked(mark)
            sys.stderr.write(f"  {number.name}: {before} processes, exit {status}, {len(after)} left\n")
            stopped += status == 0
            left += len(after)
    return {"ui_stops": stopped, "processes_left": left}
