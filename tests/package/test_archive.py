"""The import rules S2 of docs/reliability.md, one lie at a time, on real bytes."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.hostile_zip import Piece, build
from viano_assets.errors import InputError
from viano_assets.package.archive import ArchiveError, ArchiveLimits, ArchivePolicy, open_archive

TEXT = b"hello hello hello\n" * 20
A = Piece(b"a.txt", TEXT)
B = Piece(b"d/b.txt", b"other", method=8)
SOURCE = ArchivePolicy(portable_names=False, skip_special=True)


def _read(data: bytes, policy: ArchivePolicy | None = None) -> dict[str, bytes]:
    with open_archive(io.BytesIO(data), policy, where="x") as archive:
        return {entry.name: stream.read() for entry, stream in archive.members()}


def _code(data: bytes, policy: ArchivePolicy | None = None) -> str:
    with pytest.raises(ArchiveError) as caught:
        _read(data, policy)
    assert caught.value.hint
    return caught.value.code


def test_an_honest_archive_is_read() -> None:
    assert _read(build(A, B, Piece(b"d/", mode=0o040755))) == {"a.txt": TEXT, "d/b.txt": b"other"}
    assert _read(build(A, B, comment=b"made by hand")) == {"a.txt": TEXT, "d/b.txt": b"other"}
    assert _read(build(Piece(b"s", TEXT, method=8, descriptor=True), A)) == {"s": TEXT, "a.txt": TEXT}
    assert _read(build()) == {}


def _linked() -> bytes:
    first = build(A)
    second = build(B)
    return first + second


U_EXTRA = b"up" + struct.pack("<HBI", 10, 1, zlib.crc32(b"a.txt")) + b"z.txt"

LIES = {
    "overlapping entries": (build(A, Piece(b"b.txt", TEXT, at=0, local_name=b"b.txt")), "archive_ambiguous"),
    "two entries share bytes": (
        build(Piece(b"outer", build(Piece(b"in", TEXT))[: 32 + len(TEXT)]), Piece(b"in", TEXT, at=35)),
        "archive_overlap",
    ),
    "declared size larger": (build(Piece(b"a", b"12345", size=500)), "archive_damaged"),
    "deflated size larger": (build(Piece(b"a", b"12345", method=8, size=500)), "archive_damaged"),
    "deflated size smaller": (build(Piece(b"a", b"12345", method=8, size=3)), "archive_damaged"),
    "crc": (build(Piece(b"a", b"12345", crc=1)), "archive_damaged"),
    "central size": (build(Piece(b"a", b"12345", central_size=4)), "archive_ambiguous"),
    "garbage after deflate": (
        build(Piece(b"a", TEXT, 8, packed=Piece(b"a", TEXT, 8).content + b"xx")), "archive_damaged",
    ),
    "not deflate": (build(Piece(b"a", b"12345", 8, packed=b"\xff\xff\xff")), "archive_damaged"),
    "local name differs": (build(Piece(b"a.txt", b"", local_name=b"b.txt")), "archive_ambiguous"),
    "prefix": (build(A, prefix=b"#!/bin/sh\n", shift=0), "not_an_archive"),
    "prefix that looks like an entry": (build(A, prefix=b"PK\3\4junk"), "archive_prefix"),
    "prefix unnamed": (build(A, prefix=b"PK\3\4junk", shift=-8), "archive_prefix"),
    "suffix": (build(A, suffix=b"x"), "archive_trailing_bytes"),
    "concatenated": (_linked(), "archive_prefix"),
    "gap before the directory is no entry": (build(A, gap=b"hidden", count=2), "archive_damaged"),
    "two end records": (
        build(A, comment=build(B)[-22:][:20] + struct.pack("<H", 0)), "archive_ambiguous",
    ),
    "multi disk": (build(A, disk=1), "archive_multi_disk"),
    "entry on another disk": (build(Piece(b"a", extras={"disk": 2})), "archive_multi_disk"),
    "zip64 locator lies": (build(A, zip64=True, locator_shift=-4), "archive_ambiguous"),
    "count too small": (build(A, B, count=1), "archive_damaged"),
    "count too large": (build(A, B, count=3), "archive_damaged"),
    "truncated": (build(A)[:-5], "archive_truncated"),
    "NUL in name": (build(Piece(b"ok.txt\0.exe")), "archive_name"),
    "empty name": (build(Piece(b"")), "archive_name"),
    "parent": (build(Piece(b"../x")), "archive_name"),
    "inner parent": (build(Piece(b"a/../x")), "archive_name"),
    "dot part": (build(Piece(b"a/./x")), "archive_name"),
    "double slash": (build(Piece(b"a//x")), "archive_name"),
    "absolute": (build(Piece(b"/etc/passwd")), "archive_name"),
    "backslash": (build(Piece(b"a\\b")), "archive_name"),
    "drive": (build(Piece(b"C:x")), "archive_name"),
    "UNC": (build(Piece(b"\\\\server\\share")), "archive_name"),
    "stream": (build(Piece(b"a.txt:hidden")), "archive_name"),
    "escape": (build(Piece(b"a\x1b[2J")), "archive_name"),
    "bidi": (build(Piece("a\u202etxt.exe".encode())), "archive_name"),
    "long part": (build(Piece(b"a" * 256)), "archive_name"),
    "deep": (build(Piece(b"a/" * 33 + b"b")), "archive_name"),
    "trailing dot": (build(Piece(b"a.")), "archive_name"),
    "trailing space": (build(Piece(b"a /b")), "archive_name"),
    "device": (build(Piece(b"d/CON")), "archive_name"),
    "device with extension": (build(Piece(b"nul.txt")), "archive_name"),
    "COM1": (build(Piece(b"com1.log")), "archive_name"),
    "twice": (build(A, A), "archive_name_collision"),
    "letter case": (build(A, Piece(b"A.TXT")), "archive_name_collision"),
    "NFC and NFD": (
        build(Piece("ö".encode()), Piece("o\u0308".encode())), "archive_name_collision",
    ),
    "ligature": (build(Piece("ﬁ".encode()), Piece(b"fi")), "archive_name_collision"),
    "file and folder": (build(Piece(b"a"), Piece(b"a/b")), "archive_name_collision"),
    "flagged name is not UTF-8": (build(Piece(b"\xff\xfe")), "archive_name_encoding"),
    "surrogate": (build(Piece(b"\xed\xa0\x80")), "archive_name_encoding"),
    "symlink": (build(Piece(b"l", b"/etc/passwd", mode=0o120777)), "archive_special_file"),
    "fifo": (build(Piece(b"l", mode=0o010644)), "archive_special_file"),
    "character device": (build(Piece(b"l", mode=0o020644)), "archive_special_file"),
    "setuid": (build(Piece(b"l", mode=0o104755)), "archive_special_file"),
    "folder with content": (build(Piece(b"d/", b"x", mode=0o040755)), "archive_special_file"),
    "encrypted": (build(Piece(b"a", flags=0x0801)), "archive_encrypted"),
    "method 9": (build(Piece(b"a", method=9)), "archive_method"),
    "method 12": (build(Piece(b"a", method=12)), "archive_method"),
    "method 14": (build(Piece(b"a", method=14)), "archive_method"),
    "method 93": (build(Piece(b"a", method=93)), "archive_method"),
    "two names": (build(Piece(b"a.txt", extra=U_EXTRA)), "archive_ambiguous"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "code"), LIES.values(), ids=LIES)
def test_a_lie_is_refused_with_its_code(data: bytes, code: str) -> None:
    assert _code(data) == code


@pytest.mark.parametrize(
    ("limits", "pieces", "code"),
    [
        pytest.param(ArchiveLimits(archive_bytes=100), [A], "archive_too_big", id="archive bytes"),
        pytest.param(ArchiveLimits(entries=1), [A, B], "archive_too_many_entries", id="entries"),
        pytest.param(ArchiveLimits(file_bytes=300), [A], "archive_too_big", id="one file"),
        pytest.param(ArchiveLimits(total_bytes=364), [A, B], "archive_too_big", id="sum"),
        pytest.param(
            ArchiveLimits(ratio=50, ratio_floor=1000),
            [Piece(b"z", bytes(100_000), 8)],
            "archive_ratio",
            id="bomb",
        ),
    ],
)
def test_ceilings(limits: ArchiveLimits, pieces: list[Piece], code: str) -> None:
    assert _code(build(*pieces), ArchivePolicy(limits)) == code
    assert _read(build(*pieces))


def test_many_empty_entries_are_refused_before_they_are_listed() -> None:
    data = build(*(Piece(b"%d" % i) for i in range(3_000)))
    assert _code(data, ArchivePolicy(ArchiveLimits(entries=2_999))) == "archive_too_many_entries"


def test_small_zip64_archive_is_read() -> None:
    """Zip64 fields make a small archive look like one of several disks to a literal reader."""
    assert _read(build(A, B, Piece(b"c"), zip64=True)) == {"a.txt": TEXT, "d/b.txt": b"other", "c": b""}


def test_cjk_names_without_flag_are_kept_and_found_by_the_right_encoding() -> None:
    """An unflagged name is cp437 by rule and often something else in fact: raw bytes and choice are kept."""
    raw = "新しい.txt".encode("cp932")
    data = build(Piece(raw, b"x", flags=0))
    with open_archive(io.BytesIO(data)) as archive:
        assert [(e.raw_name, e.encoding) for e in archive.entries] == [(raw, "cp437")]
    with open_archive(io.BytesIO(data), ArchivePolicy(name_encoding="cp932")) as archive:
        assert [(e.name, e.raw_name, e.encoding) for e in archive.entries] == [("新しい.txt", raw, "cp932")]


def test_a_trail_byte_that_is_a_backslash_is_no_separator_in_the_right_encoding() -> None:
    raw = "表.txt".encode("cp932")
    assert b"\\" in raw
    data = build(Piece(raw, b"x", flags=0))
    with pytest.raises(ArchiveError, match="backslash") as caught:
        _read(data)
    assert "--name-encoding" in caught.value.hint
    assert _read(data, ArchivePolicy(name_encoding="cp932")) == {"表.txt": b"x"}


def test_wrong_and_unknown_name_encodings() -> None:
    data = build(Piece(b"\xff\xfe.txt", flags=0))
    assert _code(data, ArchivePolicy(name_encoding="ascii")) == "archive_name_encoding"
    assert _code(data, ArchivePolicy(name_encoding="no-such")) == "unknown_encoding"


def test_the_unicode_path_field_names_a_file_that_has_no_other_readable_name() -> None:
    raw = "ü.txt".encode("cp437")
    extra = b"up" + struct.pack("<HBI", 5 + len("ü.txt".encode()), 1, zlib.crc32(raw)) + "ü.txt".encode()
    assert _read(build(Piece(raw, b"x", flags=0, extra=extra))) == {"ü.txt": b"x"}


def test_source_policy_lists_links_and_takes_names_of_other_systems() -> None:
    data = build(A, Piece(b"A.TXT"), Piece(b"aux.c", b"int"), Piece(b"link", b"a.txt", mode=0o120777))
    with open_archive(io.BytesIO(data), SOURCE) as archive:
        assert [e.name for e in archive.entries] == ["a.txt", "A.TXT", "aux.c"]
        assert [tuple(s) for s in archive.skipped] == [("link", "a symbolic link")]
    assert _code(build(A, A), SOURCE) == "archive_name_collision"
    assert _code(build(Piece(b"../x")), SOURCE) == "archive_name"


def test_stdlib_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("grün/x.log", TEXT * 5_000)
        archive.mkdir("leer")
        with archive.open("big", "w", force_zip64=True) as stream:
            stream.write(b"y" * 70_000)
    with open_archive(path) as mine:
        big = next(e for e in mine.entries if e.name == "big")
        assert mine.open(big).read() == b"y" * 70_000
        assert {e.name: hashlib.sha256(s.read()).digest() for e, s in mine.members()}["grün/x.log"] == (
            hashlib.sha256(TEXT * 5_000).digest()
        )


def test_missing_file() -> None:
    with pytest.raises(InputError) as caught, open_archive(Path("/nowhere.zip")):
        pass
    assert caught.value.code == "unreadable_input"


def _tar(mode: str, *items: tuple[str, bytes | None, bytes], fmt: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=fmt) as archive:  # type: ignore[call-overload]
        for name, data, kind in items:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.size = len(data or b"")
            info.linkname = "target" if kind in {tarfile.SYMTYPE, tarfile.LNKTYPE} else ""
            archive.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


@pytest.mark.parametrize("fmt", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("mode", ["w:", "w:gz", "w:bz2", "w:xz"])
def test_tar_forms(mode: str, fmt: int) -> None:
    long = "d/" * 20 + "n" * 60 + ".txt"
    data = _tar(
        mode,
        ("./", None, tarfile.DIRTYPE),
        ("./a", TEXT * 9_000, tarfile.REGTYPE),
        (long, b"long", tarfile.REGTYPE),
        ("grün", b"", tarfile.REGTYPE),
        fmt=fmt,
    )
    assert _read(data) == {"a": TEXT * 9_000, long: b"long", "grün": b""}
    with open_archive(io.BytesIO(data)) as archive:
        assert archive.open(archive.entries[1]).read() == b"long"
        names = [entry.name for entry, _ in archive.members()]
        assert names == ["a", long, "grün"]


REG = tarfile.REGTYPE


def _patched(offset: int, value: bytes) -> bytes:
    data = bytearray(_tar("w:", ("a", b"12", REG)))
    data[offset : offset + len(value)] = value
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


TAR_LIES = {
    "symlink": (_tar("w:", ("l", None, tarfile.SYMTYPE)), "archive_special_file"),
    "hard link": (_tar("w:", ("l", None, tarfile.LNKTYPE)), "archive_special_file"),
    "device": (_tar("w:", ("l", None, tarfile.CHRTYPE)), "archive_special_file"),
    "fifo": (_tar("w:", ("l", None, tarfile.FIFOTYPE)), "archive_special_file"),
    "unknown type": (_patched(156, b"V"), "archive_special_file"),
    "old sparse": (_patched(156, b"S"), "archive_special_file"),
    "parent": (_tar("w:", ("../x", b"", REG)), "archive_name"),
    "absolute": (_tar("w:", ("/x", b"", REG)), "archive_name"),
    "twice": (_tar("w:", ("x", b"", REG), ("x", b"1", REG)), "archive_name_collision"),
    "twice by dot": (_tar("w:", ("x", b"", REG), ("./x", b"1", REG)), "archive_name_collision"),
    "negative size": (_patched(124, b"\xff" * 12), "archive_damaged"),
    "size is no number": (_patched(124, b"9x"), "archive_damaged"),
    "huge size": (_patched(124, b"\x80" + b"\x7f" * 11), "archive_damaged"),
    "checksum": (b"b" + _tar("w:", ("a", b"12", REG))[1:], "not_an_archive"),
    "no end": (_tar("w:", ("a", b"12", REG))[:1024], "archive_truncated"),
    "cut in content": (_tar("w:", ("a", TEXT * 200, REG))[:2048], "archive_truncated"),
    "trailing bytes": (_tar("w:", ("a", b"12", REG)) + b"x" * 512, "archive_trailing_bytes"),
    "gzip cut": (_tar("w:gz", ("a", TEXT, REG))[:-9], "archive_truncated"),
    "gzip crc": (_tar("w:gz", ("a", TEXT, REG))[:-8] + bytes(8), "archive_damaged"),
    "gzip then junk": (_tar("w:gz", ("a", TEXT, REG)) + b"junk", "archive_damaged"),
    "xz cut": (_tar("w:xz", ("a", TEXT, REG))[:-9], "archive_truncated"),
    "gzip of no tar": (
        zlib.compress(b"just text", wbits=31), "archive_truncated",
    ),
    "text": (b"just text", "not_an_archive"),
    "empty": (b"", "not_an_archive"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "code"), TAR_LIES.values(), ids=TAR_LIES)
def test_a_tar_lie_is_refused_with_its_code(data: bytes, code: str) -> None:
    assert _code(data) == code


def test_tar_bomb() -> None:
    data = _tar("w:xz", ("z", bytes(8 << 20), REG))
    limits = ArchiveLimits(ratio=200, ratio_floor=1 << 20)
    assert _code(data, ArchivePolicy(limits)) == "archive_ratio"
    assert _code(data, ArchivePolicy(ArchiveLimits(total_bytes=1 << 20))) in {
        "archive_too_big",
        "archive_damaged",
    }


def test_tar_of_links_under_the_source_policy() -> None:
    data = _tar("w:gz", ("a", b"1", REG), ("l", None, tarfile.SYMTYPE), ("b", b"2", REG))
    assert _read(data, SOURCE) == {"a": b"1", "b": b"2"}


def test_joined_gzip_members_are_one_stream() -> None:
    data = _tar("w:", ("a", TEXT, REG))
    joined = zlib.compress(data[:700], wbits=31) + zlib.compress(data[700:], wbits=31)
    assert _read(joined) == {"a": TEXT}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_edit_of_an_archive_is_read_or_refused(draw: st.DataObject) -> None:
    """Only declared errors come out of damaged bytes, and what is handed out has the length it states."""
    seeds = [
        build(A, B, zip64=True),
        build(A, B),
        _tar("w:", ("a", TEXT, REG)),
        _tar("w:gz", ("a", TEXT, REG)),
    ]
    data = bytearray(draw.draw(st.sampled_from(seeds)))
    for _ in range(draw.draw(st.integers(1, 4))):
        position = draw.draw(st.integers(0, len(data) - 1))
        cut = draw.draw(st.integers(0, 3))
        data[position : position + cut] = draw.draw(st.binary(max_size=4))
    try:
        with open_archive(io.BytesIO(bytes(data)), SOURCE) as archive:
            for entry, stream in archive.members():
                assert len(stream.read()) == entry.size
    except InputError:
        pass
