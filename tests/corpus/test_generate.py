"""The generated bugs: repeatable, believable, and true in what their gold says."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.corpus.build import Case
from tests.corpus.bundle import FOLDER, bundled_cases
from tests.corpus.generate import VARIANTS, generate, pack, write_case
from viano_assets.evaluation.gold import GoldVerdict, read_gold

ALL = [(family, variant) for family, variants in VARIANTS.items() for variant in variants]
SEEDS = (1, 2, 3, 4, 5, 6)


def make(family: str, variant: str, seed: int, *, twin: bool = False) -> Case:
    return generate(family, variant, seed, "de" if seed % 2 else "en", twin=twin, subsystems=8)


@pytest.mark.parametrize(("family", "variant"), ALL)
def test_the_same_arguments_give_the_same_bytes_in_another_process(
    family: str, variant: str, tmp_path: Path
) -> None:
    """Hash seeds differ between processes: an order taken from a set would show."""
    case = generate(family, variant, 7, "de")
    command = [sys.executable, "-m", "tests.corpus.generate", "--family", family, "--variant", variant]
    subprocess.run(
        [*command, "--seed", "7", "--language", "de", "--out", str(tmp_path)], check=True, capture_output=True
    )
    written = tmp_path / case.case_id
    assert (written / case.report_name).read_bytes() == case.report
    for role, files, top in (("diagnostics", case.diagnostics, ""), ("source", case.source, "server-src/")):
        with zipfile.ZipFile(written / f"{role}.zip") as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == pack(files, top)


@pytest.mark.parametrize(("family", "variant"), ALL)
@pytest.mark.parametrize("twin", [False, True])
def test_gold_names_places_that_exist(family: str, variant: str, *, twin: bool) -> None:
    for seed in SEEDS:
        case = make(family, variant, seed, twin=twin)
        gold = read_gold(case.gold, case.case_id)
        assert gold.is_control == (gold.verdict is not GoldVerdict.DEFECT) == (not gold.locations)
        for place in gold.locations:
            if place.path is None:
                assert f"CREATE TABLE `{place.table}`".encode() in case.diagnostics["db/world.sql"]
                continue
            text = (case.source | case.diagnostics)[place.path].decode()
            assert place.lines is not None
            assert text.splitlines()[place.lines[0] - 1].strip()
            if place.symbol is not None:
                assert place.symbol.split("::", 1)[1] + "(" in text


@pytest.mark.parametrize(("family", "variant"), ALL)
def test_a_twin_has_the_same_report_and_another_truth(family: str, variant: str) -> None:
    for seed in SEEDS:
        case, twin = make(family, variant, seed), make(family, variant, seed, twin=True)
        assert case.report == twin.report
        assert {k: v for k, v in case.gold.items() if k != "canaries"} != {
            k: v for k, v in twin.gold.items() if k != "canaries"
        }


def test_p5_variants_share_the_report() -> None:
    for seed in SEEDS:
        assert len({make("P5", variant, seed).report for variant in "ABC"}) == 1


def test_p1_lacks_the_rows_and_its_twin_has_them() -> None:
    for seed in SEEDS:
        case, twin = make("P1", "A", seed), make("P1", "A", seed, twin=True)
        (place,) = read_gold(case.gold, "case").locations
        assert place.key is not None
        proc, stage = place.key.values()
        row = re.compile(rf"\({proc},{stage},\d+,")
        assert not row.search(case.diagnostics["db/world.sql"].decode())
        assert row.search(twin.diagnostics["db/world.sql"].decode())
        logs = [c.diagnostics["logs/server.log"].decode().splitlines() for c in (case, twin)]
        differing = [a for a, b in zip(*logs, strict=True) if a != b]
        assert all(">> loaded" in line for line in differing)


def test_p6_c_has_neither_log_nor_state_nor_tables() -> None:
    for seed in SEEDS:
        assert not [
            name for name in make("P6", "C", seed).diagnostics if name.startswith(("logs/", "state/", "db/"))
        ]


def test_names_and_places_vary_with_the_seed() -> None:
    """No fixed rule can name them: neither the file, nor the table, nor the line."""
    places = [make("P5", "A", seed).gold["locations"][0] for seed in range(1, 13)]
    assert len({place["symbol"] for place in places}) >= 8
    tables = {make("P1", "A", seed).gold["locations"][0]["table"] for seed in range(1, 13)}
    assert len(tables) >= 8


def test_the_secret_of_the_configuration_is_a_canary() -> None:
    for seed in SEEDS:
        case = make("P1", "A", seed)
        conf = next(data for name, data in case.diagnostics.items() if name.startswith("config/"))
        (canary,) = case.gold["canaries"]
        assert canary.encode() in conf
        assert canary.encode() not in case.report


def test_bundled_cases_are_what_the_generator_makes(tmp_path: Path) -> None:
    """Members are compared, not archive bytes: another zlib may pack the same bytes differently."""
    for case in bundled_cases():
        stored, fresh = FOLDER / case.case_id, write_case(case, tmp_path)
        assert sorted(p.name for p in stored.iterdir()) == sorted(p.name for p in fresh.iterdir())
        for path in fresh.iterdir():
            data, expected = (stored / path.name).read_bytes(), path.read_bytes()
            if path.suffix != ".zip":
                assert data == expected, path.name
                continue
            with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(io.BytesIO(expected)) as new:
                assert [(i.filename, i.CRC, i.file_size) for i in old.infolist()] == [
                    (i.filename, i.CRC, i.file_size) for i in new.infolist()
                ]
    assert sum(p.stat().st_size for p in FOLDER.rglob("*") if p.is_file()) < 3_000_000
    names = {json.loads((p / "gold.json").read_text())["verdict"] for p in FOLDER.iterdir()}
    assert names == {"defect", "insufficient_information"}
