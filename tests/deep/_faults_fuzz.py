"""Fuzzed model replies, SQL, log bytes and settings (R15); archives and records are in `_faults_bytes`.

Inputs are edits of real ones by a seeded generator: bytes flipped, cut, doubled and spliced, and odd values
in a document that keeps its form. Only declared errors may come out, each within two seconds.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from resources.llm.config import LLMConfig
from resources.tools.database.worker import RefusedError, gate
from resources.tools.logs.capability import level_counts, settings
from resources.tools.logs.files import TextFile
from resources.tools.logs.templates import mine
from tests.deep._faults_bytes import Input, Work, _edited, _odd_field, feed
from tests.deep._faults_kill import Tally
from tests.deep._investigation_sql import attacks
from tests.support.forgeries import finished
from viano_assets.canonical import canonical_json, strict_loads
from viano_assets.data_files import CONFIG
from viano_assets.errors import ContractError
from viano_assets.phases.common import decode
from viano_assets.phases.diagnosis.config import DiagnosisConfig
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.hypotheses.contract import HypothesesAnswer
from viano_assets.phases.interpretation.config import InterpretationConfig
from viano_assets.phases.interpretation.contract import InterpretationAnswer
from viano_assets.phases.investigation.answers import read_answer
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.investigation.contract import CONTRACT

_TEMPLATE_SHARE = 8
"""Every so-manieth log is also read whole: templates, levels and settings of it."""

_SQL = (
    "SELECT a.id, count(*) FROM big a JOIN small b ON a.id = b.id WHERE a.name LIKE '%x%' GROUP BY 1 LIMIT 5",
    "EXPLAIN SELECT * FROM small WHERE \"col\" = 'it''s' -- done",
    "WITH r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r /* all */",
    "SELECT CASE WHEN x IS NULL THEN -1 ELSE x::BIGINT END FROM (VALUES (1), (NULL)) t(x)",
)
_LOG = b"""2031-04-01 10:00:00,123 INFO [main] started with level=DEBUG\r
Apr  1 10:00:01 host app[77]: warn: berth 3 not assigned\n1774951202.5 error code=0x1F\n
[01/Apr/2031:10:00:03 +0200] "GET /x HTTP/1.1" 500\n\xff\xfe broken \xe4\xf6 line\n... 5 lines omitted ...
"""


def _reply(data: bytes) -> None:
    answer = strict_loads(data)
    for model in (InterpretationAnswer, HypothesesAnswer, DiagnosisAnswer):
        decode(model, answer)
    read_answer(CONTRACT, answer)


def _replies(rng: random.Random, count: int) -> Iterator[Input]:
    made = finished()
    seeds = []
    for path in sorted(made.head.files):
        if "/calls/" in path and path.endswith(".json"):
            record = json.loads(made.store.read(made.head, path))
            seeds.append(canonical_json(record["answer"]))
    for _ in range(count):
        raw = rng.choice(seeds)
        yield _reply, _edited(rng, raw) if rng.random() < 0.4 else _odd_field(rng, raw)


def _statements(rng: random.Random, count: int) -> Iterator[Input]:
    import duckdb  # heavy, and only this part needs it

    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET enable_external_access=false; SET lock_configuration=true")

    def parse(data: bytes) -> None:
        try:
            gate(connection, data.decode("utf-8", "replace"))
        except RefusedError as error:
            raise ContractError("refused", str(error)) from error

    hostile = [s for attack in attacks("/secret", "/folder", 1, "/file") for s in attack.statements]
    seeds = [text.encode() for text in (*_SQL, *hostile) if len(text) < 2_000]
    for _ in range(count):
        yield parse, _edited(rng, rng.choice(seeds))


def _logs(rng: random.Random, count: int, folder: Path) -> Iterator[Input]:
    numbers = iter(range(count))

    def read(data: bytes) -> None:
        number = next(numbers)
        place = folder / f"{number % 64}.log"
        place.write_bytes(data)
        encoding = ("utf-8", "cp1252")[number % 2]
        file = TextFile("server.log", place, encoding, data=False, origin=("in", "0" * 64), exact=True)
        whole = (file.kind, file.times, file.blocks, file.wholeness)
        lines = file.text(1, file.lines) if file.lines else []
        if len(lines) != file.lines or len(whole) != 4:
            raise AssertionError("the lines are not all there")
        file.damaged(1, file.lines) if file.lines else None
        if number % _TEMPLATE_SHARE == 0:
            mine(file)
            level_counts(file)
            settings([file])

    folder.mkdir(parents=True)
    seeds = [_LOG, _LOG * 3, _LOG.replace(b"\n", b"\r\n"), b"x" * 5_000, b"\n" * 300, _LOG[:40] * 50]
    for _ in range(count):
        yield read, _edited(rng, rng.choice(seeds))


def _configs(rng: random.Random, count: int, folder: Path) -> Iterator[Input]:
    folder.mkdir(parents=True)
    place = folder / "any.local.toml"
    loads: dict[str, Callable[[Path], object]] = {
        "llm": LLMConfig.load,
        "analysis": lambda path: (InterpretationConfig.load(path), HypothesisConfig.load(path)),
        "investigation": InvestigationConfig.load,
        "diagnosis": DiagnosisConfig.load,
    }
    seeds = {path.name.split(".")[0]: path.read_bytes() for path in sorted(CONFIG.glob("*.example.toml"))}
    names = sorted(loads.keys() & seeds.keys())
    assert len(names) == len(loads), f"no example for {sorted(loads.keys() - seeds.keys())}"

    def reading(load: Callable[[Path], object]) -> Work:
        def read(data: bytes) -> None:
            place.write_bytes(data)
            load(place)

        return read

    odd = (
        b"true",
        b"-1",
        b"nan",
        b"1e999",
        b"[[1]]",
        b"{a=1}",
        b'"x"',
        b"9" * 5_000,
        b"1979-05-27",
        b"[" * 300,
        b"[" * 5_000,
    )
    for _ in range(count):
        name = rng.choice(names)
        data = seeds[name]
        if rng.random() < 0.6:
            lines = [line.removeprefix(b"# ") if b" = " in line else line for line in data.split(b"\n")]
            place_of = [number for number, line in enumerate(lines) if b" = " in line]
            chosen = rng.choice(place_of)
            lines[chosen] = lines[chosen].split(b" = ")[0] + b" = " + rng.choice(odd)
            data = b"\n".join(lines)
        else:
            data = _edited(rng, data)
        yield reading(loads[name]), data


def classes(scratch: Path, count: int) -> dict[str, Iterator[Input]]:
    """Return the inputs of each class, `count` each."""
    return {
        "model replies": _replies(random.Random(151), count),
        "SQL": _statements(random.Random(152), count),
        "logs": _logs(random.Random(153), count, scratch / "logs"),
        "settings": _configs(random.Random(154), count, scratch / "settings"),
    }


def run(scratch: Path, tally: Tally, count: int) -> int:
    """Feed every class; a finding is counted as torn. Returns how many inputs were fed."""
    total = 0
    for name, inputs in classes(scratch, count).items():
        fed, refused = feed(inputs, name, tally)
        sys.stderr.write(f"fuzz: {name}: {fed} inputs, {refused} refused\n")
        total += fed
    return total
