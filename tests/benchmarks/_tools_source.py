"""Speed of the source tools on generated trees: search, symbols and index."""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from resources.tools.source import SourceTree, index
from resources.tools.source.search import ripgrep

CODE_BYTES = 24_000_000
TREE_BYTES = 130_000_000
FILES = 1_376
ROUNDS = 7

_TEXT = (
    "queue buffer order vessel ticket sensor engine ledger signal packet region bridge worker filter "
    "handle record anchor parcel courier invoice lantern meadow orchard pebble quarry ribbon saddle "
    "timber valley willow yonder "
)
_WORDS = _TEXT.split()


def _name(rng: random.Random, camel: bool = True) -> str:
    parts = [rng.choice(_WORDS) for _ in range(rng.randint(2, 3))]
    return "".join(p.capitalize() for p in parts) if camel else "_".join(parts)


def _function(rng: random.Random, owner: str) -> str:
    lines = [f"/// {' '.join(rng.choice(_WORDS) for _ in range(9))}."]
    lines.append(f"bool {owner}::{_name(rng)}(uint32 {_name(rng, camel=False)}, {_name(rng)}* other)")
    lines.append("{")
    for _ in range(rng.randint(4, 28)):
        one, two = _name(rng, camel=False), _name(rng)
        lines.append(
            rng.choice(
                (
                    f"    if ({one} > {rng.randint(1, 9999)} && other->{two}({one}))",
                    f"    m_{one} = other->Get{two}() + {rng.randint(1, 99)};",
                    f'    LOG_ERROR("{one}.{two}", "value %u of {rng.choice(_WORDS)} is wrong", {one});',
                    f"    for (auto const& {one} : {two}List) {{ {one}.Update(diff); }}",
                    f"    // {' '.join(rng.choice(_WORDS) for _ in range(6))}",
                    f"    return {two}::Instance().{_name(rng)}({one}, nullptr);",
                )
            )
        )
    return "\n".join([*lines, "}", ""])


def _file(rng: random.Random, size: int) -> str:
    owner = _name(rng) + str(rng.randint(1, 999))
    entries = ",\n".join(f"    {_name(rng, camel=False).upper()}_{n} = {n}" for n in range(20))
    parts = [f'#include "{owner}.h"\n', f"enum {owner}Kind\n{{\n{entries}\n}};\n", "#if BUILD > 4\n#endif\n"]
    used = sum(map(len, parts))
    while used < size:
        parts.append(_function(rng, owner))
        used += len(parts[-1]) + 1
    return "\n".join(parts)


def _generate(root: Path) -> Path:
    """Write the C++ tree and beside it the large data files; returns the folder of the C++ tree."""
    rng = random.Random(7)
    code = root / "src"
    for number in range(FILES):
        target = code / f"part{number % 37:02}" / f"unit{number:04}.cpp"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_file(rng, CODE_BYTES // FILES))
    row = "".join(f"({n},'{_name(rng)}',{n * 7}),\n" for n in range(4_000))
    (root / "sql").mkdir()
    each = 3_300_000
    for number in range((TREE_BYTES - CODE_BYTES) // each):
        head = f"INSERT INTO t{number} VALUES\n"
        (root / "sql" / f"data{number:03}.sql").write_text(head + row * (each // len(row)))
    return code


def _wall(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _search_ratio(root: Path, cache: Path) -> float:
    """Return the median of the tool's time over that of bare ripgrep, in turns."""
    tree = SourceTree(root, "inputs/source/big.zip", "12" * 32, cache)
    pattern = "MeadowQuarryRibbon"
    command = [ripgrep(), "--no-config", "-F", "-n", "-uu", "-e", pattern, "--", str(root)]
    tree.search({"pattern": pattern})
    ours, bare = [], []
    for _ in range(ROUNDS):
        bare.append(_wall(lambda: subprocess.run(command, capture_output=True, check=False)))
        ours.append(_wall(lambda: tree.search({"pattern": pattern})))
    tree.close()
    return statistics.median(ours) / statistics.median(bare)


def figures() -> dict[str, float]:
    """Return `search_vs_ripgrep`, `symbols_cpu_s` and `index_cpu_s` (the index beyond the symbols)."""
    with tempfile.TemporaryDirectory(prefix="viano-bench-") as folder:
        root = Path(folder) / "tree"
        code = _generate(root)
        small = Path(folder) / "small"
        small.mkdir()
        (small / "a.cpp").write_text(_file(random.Random(8), 20_000))
        index.build(small, Path(folder) / "cache" / "small.sqlite")  # imports count once, not per tree
        cost = index.build(code, Path(folder) / "cache" / "code.sqlite")
        ratio = _search_ratio(root, Path(folder) / "cache")
        return {
            "search_vs_ripgrep": round(ratio, 3),
            "symbols_cpu_s": round(cost.symbols_s, 2),
            "index_cpu_s": round(cost.ranking_s, 2),
        }
