"""`make test-deep NAME=daemon`: Dagster's own processes over real homes, and an installation elsewhere.

- `viano ui` stopped by SIGTERM and by SIGINT, at rest: nothing that it started is left.
- A provider asks to wait; the daemon is killed, the due time passes, the daemon starts again: one run.
- A run's worker is killed in a model call; a tick of the daemon ends the run, the next run continues.
- A range of `DAEMON_CASES` (200) partitions with one case that cannot go on: exactly its partitions are red.
- The sensor reprocesses a corpus of `NIGHT_CASES` (500) generated bugs, one damaged, killed once in between.
- `pip install` of the repository into an empty environment: demo, validation and more from elsewhere (null
  without a package index).

`DAEMON_PARTS=ui,retry,...` runs some of them; the figures of the others are null.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.deep import _daemon_install, _daemon_night, _daemon_range, _daemon_sensors, _daemon_ui

Part = Callable[[Path], dict[str, object]]

PARTS: dict[str, tuple[Part, tuple[str, ...]]] = {
    "ui": (_daemon_ui.stops, ("ui_stops", "processes_left")),
    "retry": (_daemon_sensors.retry_after_restart, ("retries_due", "retry_runs", "retry_diagnoses")),
    "reap": (_daemon_sensors.reaped_by_a_tick, ("dead_runs", "reaped_runs", "repeated_calls")),
    "range": (_daemon_range.one_broken, ("range_cases", "range_broken", "range_red", "checks_planned")),
    "night": (
        _daemon_night.whole,
        (
            "night_cases",
            "night_diagnosed",
            "night_broken",
            "night_isolated",
            "night_finished_at_kill",
            "night_repeated",
            "night_seconds",
        ),
    ),
    "install": (_daemon_install.elsewhere, ("install_checks", "install_failures")),
}


def main() -> dict[str, object]:
    """Run the parts and return their figures."""
    wanted = os.environ.get("DAEMON_PARTS", ",".join(PARTS)).split(",")
    unknown = sorted(set(wanted) - set(PARTS))
    if unknown:
        raise SystemExit(f"DAEMON_PARTS: {', '.join(unknown)} is none of {', '.join(PARTS)}")
    figures: dict[str, object] = {name: None for _, names in PARTS.values() for name in names}
    for name, (part, names) in PARTS.items():
        if name not in wanted:
            continue
        sys.stderr.write(f"{name} ...\n")
        with tempfile.TemporaryDirectory(prefix=f"viano-{name}-") as folder:
            found = part(Path(folder))
        sys.stderr.write(f"{name}: {found}\n")
        figures |= {key: found[key] for key in names}
    return figures
