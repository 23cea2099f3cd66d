"""Builds real snapshots from texts, through the real loader process."""

from __future__ import annotations

from pathlib import Path

from resources.tools.database.naming import kind_of
from resources.tools.database.snapshot import DataInput, Snapshot, ensure

SHA = "0" * 64


def snapshot_of(
    folder: Path, files: dict[str, str | bytes], encodings: dict[str, str] | None = None
) -> Snapshot:
    """Write the files and load them; a file of bytes that no text reader knows has no encoding."""
    inputs = []
    for name, content in files.items():
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        encoding = (encodings or {}).get(name, "utf-8")
        raw = content.encode(encoding) if isinstance(content, str) else content
        path.write_bytes(raw)
        binary = b"\x00" in raw[:64] and not encoding.startswith("utf-16")
        inputs.append(
            DataInput(
                name, path, kind_of(name, raw[:512]), None if binary else encoding, f"inputs/{name}", SHA
            )
        )
    derived = folder / "derived"
    derived.mkdir()
    snapshot = ensure(derived, inputs, None)
    if snapshot is None:
        raise AssertionError("no data file")
    return snapshot


def rows_of(snapshot: Snapshot, table: str) -> list[tuple[object, ...]]:
    """Return every row of a table in the order of the file."""
    with snapshot.connect(30) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY rowid').fetchall()
