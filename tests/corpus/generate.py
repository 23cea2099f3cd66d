"""Generate known bugs: `python -m tests.corpus.generate --family P1 --seed 3 --out DIR`.

The same arguments give the same bytes. `--twin` gives the case with the same surface and the opposite truth.
`--every 1-20 --out DIR` writes every family, variant and twin for each of the seeds, in both languages.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.corpus import p1, p2, p3, p4, p5, p6
from tests.corpus.build import Case, Files, finish, make_setting

FAMILIES = ("P1", "P2", "P3", "P4", "P5", "P6")
VARIANTS = {"P1": "A", "P2": "A", "P3": "A", "P4": "A", "P5": "ABC", "P6": "ABC"}
SINGLE = {"P1": p1.draft, "P2": p2.draft, "P3": p3.draft, "P4": p4.draft}
TWIN_OF_P5 = {"A": "B", "B": "A", "C": "A"}
SUBSYSTEMS = 36
"""Subsystems besides the kernel; two files each."""


def generate(
    family: str, variant: str, seed: int, language: str, *, twin: bool = False, subsystems: int = SUBSYSTEMS
) -> Case:
    """Make one case.

    Raises:
        ValueError: no such family, variant or language.
    """
    if variant not in VARIANTS.get(family, "") or language not in {"en", "de"}:
        raise ValueError(f"no case {family}-{variant} in language {language}")
    setting = make_setting(seed, family, subsystems)
    if family in SINGLE:
        draft = SINGLE[family](setting, language, twin=twin)
    elif family == "P5":
        draft = p5.draft(setting, language, TWIN_OF_P5[variant] if twin else variant)
    else:
        draft = p6.draft(setting, language, variant, twin=twin)
    case_id = f"{family}-{variant}-{seed}{'-twin' if twin else ''}"
    return finish(setting, draft, case_id, language, control=draft.verdict != "defect")


def write_every(seeds: Iterable[int], out: Path) -> Iterator[Path]:
    """Write every family and variant with its twin for each seed, German and English in turns."""
    kinds = [(family, variant) for family in FAMILIES for variant in VARIANTS[family]]
    for seed in seeds:
        for number, (family, variant) in enumerate(kinds):
            language = "en" if (seed + number) % 2 else "de"
            for twin in (False, True):
                yield write_case(generate(family, variant, seed, language, twin=twin), out)


def pack(files: Files, top: str) -> dict[str, bytes]:
    """Return the members of an archive in order, below one top folder unless `top` is empty."""
    return {f"{top}{path}": data for path, data in sorted(files.items())}


def write_zip(path: Path, members: dict[str, bytes]) -> None:
    """Write a deflated archive without any trace of when or where it was made."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (2031, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)


def write_case(case: Case, out: Path, *, zipped: bool = True) -> Path:
    """Write a case as a folder of `out` and return that folder."""
    folder = out / case.case_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bug.toml").write_text(case.toml, encoding="utf-8")
    (folder / case.report_name).write_bytes(case.report)
    gold = json.dumps(case.gold, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (folder / "gold.json").write_text(gold, encoding="utf-8")
    for role, files, top in (("diagnostics", case.diagnostics, ""), ("source", case.source, "server-src/")):
        if zipped:
            write_zip(folder / f"{role}.zip", pack(files, top))
            continue
        for name, data in files.items():
            target = folder / role / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    return folder


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main(arguments: list[str]) -> int:
    """Read the command line and write one case, or every kind of case for several seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--variant", choices=list("ABC"), default="A")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--every", type=_seeds, metavar="FIRST-LAST", help="every kind for these seeds")
    parser.add_argument("--language", choices=["en", "de"], default="en")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--twin", action="store_true", help="same surface, opposite truth")
    parser.add_argument("--folders", action="store_true", help="folders instead of ZIP archives")
    given = parser.parse_args(arguments)
    if given.every is not None:
        count = sum(1 for _ in write_every(given.every, given.out))
        sys.stdout.write(f"{count} cases in {given.out}\n")
        return 0
    if given.family is None or given.seed is None:
        parser.error("--family and --seed, or --every")
    try:
        case = generate(given.family, given.variant, given.seed, given.language, twin=given.twin)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write(f"{write_case(case, given.out, zipped=not given.folders)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
