"""A 2 GB diagnostic archive: memory, interruption, repetition, redaction of a 500 MB log and a 300 MB dump.

Everything runs in child processes of their own, so that the peak resident size is theirs. `INTAKE_MB`
scales the archive down for a quick look; the figures of the release are those of the full size.
"""

# ruff: noqa: E501 - the child and the log lines are read in one piece

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from viano_assets.package.store import CheckpointStore

CHILD = """
import resource, sys, json, time
from pathlib import Path
from viano_assets.case.intake import import_case
from viano_assets.case.view import InputView
from viano_assets.package.store import CheckpointStore
home, report, diagnostics, step = sys.argv[1:5]
store = CheckpointStore(Path(home))
began = time.perf_counter()
lines = []
if step == "import":
    def said(text):
        lines.append(text)
        print(text, file=sys.stderr, flush=True)
    head = import_case(store, case_id="BIG", report=Path(report), diagnostics=Path(diagnostics), progress=said)
    files = sorted(head.raw_inputs())
else:
    view = InputView.open(store, store.latest("BIG"), Path(home) / "cache")
    files = [(f.path, f.size, f.redacted) for f in view.files("diagnostics")]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": time.perf_counter() - began, "peak_mb": peak, "lines": len(lines), "files": files}))
"""


def build(path: Path, megabytes: int) -> None:
    """Write the archive: a quarter log, 15 % dump, the rest incompressible."""
    generator = random.Random(7)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("logs/server.log", "w", force_zip64=True) as out:
            size = 0
            while size < megabytes * 250_000:
                block = "".join(
                    f"2024-05-01 10:{n % 60:02}:{n % 59:02} ERROR peer 93.184.{generator.randrange(256)}.{n % 256} "
                    f"user=anna{generator.randrange(1000)} berth {generator.randrange(10**6)} is closed\n"
                    for n in range(20_000)
                ).encode()
                out.write(block)
                size += len(block)
        with archive.open("db/world.sql", "w", force_zip64=True) as out:
            out.write(b"CREATE TABLE `berth` (\n  `id` int,\n  `name` varchar(40)\n);\n")
            size = 0
            while size < megabytes * 150_000:
                rows = ",".join(f"({generator.randrange(10**7)},'berth {n}')" for n in range(30_000))
                block = f"INSERT INTO `berth` VALUES {rows};\n".encode()
                out.write(block)
                size += len(block)
        with archive.open("media/video.bin", "w", force_zip64=True) as out:
            for _ in range(megabytes * 600_000 // (1 << 20)):
                out.write(generator.randbytes(1 << 20))


def child(home: Path, report: Path, archive: Path, step: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), str(report), str(archive), step],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def finished(process: subprocess.Popen[bytes]) -> dict[str, float]:
    out, _ = process.communicate()
    assert process.returncode == 0, process.returncode
    result: dict[str, float] = json.loads(out)
    return result


def files(home: Path) -> int:
    """Count the files of a home."""
    return sum(1 for path in home.rglob("*") if path.is_file()) if home.exists() else 0


def interrupted(root: Path, report: Path, archive: Path, seconds: list[float]) -> tuple[int, int]:
    """Interrupt an import at several moments and repeat it.

    Returns how often a case was visible that the store or the repetition refused, and how many files more
    than an undisturbed import the repeated one left.
    """
    torn = more = 0
    for at, wait in enumerate(seconds):
        home = root / f"home-{at}"
        process = child(home, report, archive, "import")
        time.sleep(wait)
        process.send_signal(signal.SIGINT if at % 2 else signal.SIGKILL)
        process.communicate()
        store = CheckpointStore(home)
        complete = bool(store.case_ids()) and store.latest("BIG").manifest.lifecycle == "ASSEMBLED"
        if not complete:
            repeated = child(home, report, archive, "import")
            repeated.communicate()
            torn += repeated.returncode != 0
        more += files(home) - files(root / "trial")
        shutil.rmtree(home)
    return torn, more


def main() -> dict[str, object]:
    megabytes = int(os.environ.get("INTAKE_MB", "2000"))
    with tempfile.TemporaryDirectory(prefix="viano-deep-") as folder:
        root = Path(folder)
        report = root / "report.md"
        report.write_text("# Berths close\n\n## Observed\nAll berths are closed.\n")
        archive = root / "diag.zip"
        build(archive, megabytes)
        home = root / "trial"
        imported = finished(child(home, report, archive, "import"))
        moments = [imported["seconds"] * part for part in (0.15, 0.3, 0.5, 0.7)]
        torn, more = interrupted(root, report, archive, moments)
        view = finished(child(home, report, archive, "view"))
        again = finished(child(home, report, archive, "view"))
        return {
            "archive_bytes": archive.stat().st_size,
            "import_seconds": round(imported["seconds"], 1),
            "import_peak_mb": round(imported["peak_mb"]),
            "progress_lines": imported["lines"],
            "interruptions": len(moments),
            "refused_repetitions": torn,
            "files_left_behind": more,
            "view_seconds": round(view["seconds"], 1),
            "view_peak_mb": round(view["peak_mb"]),
            "view_again_seconds": round(again["seconds"], 3),
            "view_bytes": sum(path.stat().st_size for path in (home / "cache").rglob("*") if path.is_file()),
        }
