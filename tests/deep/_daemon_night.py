"""One night's reprocessing of hundreds of generated bugs by the corpus sensor under a real daemon.

The home holds `NIGHT_CASES` (500) cases of every family, one of them damaged. The sensor is switched on, the
daemon and every process below it are killed when part of the cases is finished, and started again. In the end
the run is judged, only the damaged case has no diagnosis, and no case that was finished got a new generation.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path
from typing import Any

import dagster as dg

from tests.corpus.generate import write_every
from tests.deep._daemon_sensors import DAEMON, dagster_home, opened
from tests.support.commands import viano
from tests.support.damage import cut_largest
from tests.support.processes import marked, started, wait_until
from viano_assets.assets.specs import ASSET_OF_PHASE
from viano_assets.errors import VianoError
from viano_assets.evaluation.corpus import build_corpus, corpus_of_folder
from viano_assets.evaluation.stored import CorpusFolder
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import Phase

CASES = int(os.environ.get("NIGHT_CASES", "500"))
CORPUS = "night"
PATIENCE_S = 8 * 3600.0
KILLED_AT = 0.3
"""Share of the cases that are diagnosed when everything is killed."""


def whole(root: Path) -> dict[str, object]:
    """Build the corpus, let the daemon reprocess it with one kill, and count."""
    home = root / "home"
    cases = _built(home)
    broken = cases[len(cases) // 2]
    cut_largest(home, broken)
    environment = dagster_home(home)
    start = time.monotonic()
    with opened(environment) as instance:
        if viano(home, "sync").status:
            raise AssertionError("viano sync failed")
        _switch_on(environment, root)
        with started(DAEMON, f"dies-{root.name}", root / "said", environment):
            wait_until(lambda: _diagnosed(instance) >= KILLED_AT * CASES, "part of the cases", PATIENCE_S)
            for pid in marked(f"dies-{root.name}"):
                os.kill(pid, signal.SIGKILL)
        before = _finished(home, cases)
        sys.stderr.write(f"killed with {len(before)} cases finished\n")
        with started(DAEMON, f"ends-{root.name}", root / "said", environment):
            wait_until(lambda: bool(CorpusFolder(home, CORPUS).judged_ids()), "the judged run", PATIENCE_S)
    seconds = time.monotonic() - start
    after = _finished(home, cases)
    failed = _failed(home)
    if failed != [broken]:
        raise AssertionError(f"without a diagnosis are {failed[:5]}, not {broken}")
    return {
        "night_cases": len(cases),
        "night_diagnosed": len(after),
        "night_broken": 1,
        "night_isolated": len(failed),
        "night_finished_at_kill": len(before),
        "night_repeated": sum(after.get(case) != generation for case, generation in before.items()),
        "night_seconds": round(seconds),
    }


def _built(home: Path) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="viano-bugs-") as folder:
        for _ in islice(write_every(count(2001), Path(folder)), CASES):
            pass
        build_corpus(
            CheckpointStore(home), home, corpus_of_folder(CORPUS, Path(folder)), cache=home / "cache"
        )
    built: dict[str, Any] = CorpusFolder(home, CORPUS).built() or {}
    cases = [str(bug["case_id"]) for bug in built["bugs"]]
    if len(cases) != CASES:
        raise AssertionError(f"{len(cases)} cases were built")
    return cases


def _switch_on(environment: dict[str, str], root: Path) -> None:
    command = (sys.executable, "-m", "dagster", "sensor", "start", "corpus_reprocess")
    with started(
        (*command, "-m", "viano_assets.definitions"), f"on-{root.name}", root / "said", environment
    ) as process:
        if process.wait(300):
            raise AssertionError("the sensor could not be switched on")


def _diagnosed(instance: dg.DagsterInstance) -> int:
    time.sleep(3)
    return len(instance.get_materialized_partitions(ASSET_OF_PHASE[Phase.DIAGNOSIS]))


def _finished(home: Path, cases: list[str]) -> dict[str, int]:
    """Return the generation of every case whose newest revision has a diagnosis."""
    store = CheckpointStore(home)
    found = {}
    for case in cases:
        try:
            head = store.latest(case)
        except VianoError:
            continue
        if head.pointer("diagnosis") is not None:
            found[case] = head.generation
    return found


def _failed(home: Path) -> list[str]:
    folder = CorpusFolder(home, CORPUS)
    scores = json.loads(folder.run(folder.judged_ids()[-1], "scores.json").read_bytes())
    return [str(row["case_id"]) for row in scores["rows"] if row.get("error_code")]
