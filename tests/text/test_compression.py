"""Compressed files read as plain ones; damaged ones are refused with the line they break at."""

import bz2
import gzip
import lzma
import sys
from pathlib import Path

import pytest

from glassformer.errors import DataError
from glassformer.text import read_lines

LINES = [f"line {i} of a text that goes on, {i * i}" for i in range(5000)]
TEXT = "\n".join(LINES).encode()


def _zstd(raw: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(raw)


COMPRESSORS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": _zstd}


@pytest.fixture(params=COMPRESSORS)
def packed(request, tmp_path: Path) -> Path:
    path = tmp_path / f"text.txt{request.param}"
    path.write_bytes(COMPRESSORS[request.param](TEXT))
    return path


def test_compressed_text(packed: Path) -> None:
    found, report = read_lines(packed)
    assert found == LINES and not report.problems


def test_parts_compressed_apart_and_put_together(packed: Path) -> None:
    packed.write_bytes(packed.read_bytes() + COMPRESSORS[packed.suffix](b"\nanother"))
    assert read_lines(packed)[0] == [*LINES, "another"]


@pytest.mark.plain
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_files_that_break_off(packed: Path, share: float) -> None:
    whole = packed.read_bytes()
    packed.write_bytes(whole[: int(len(whole) * share)])
    sentence = (
        rf"text.txt\{packed.suffix} must be a complete \{packed.suffix} file; it is damaged or "
    )
    with pytest.raises(DataError, match=sentence + r"truncated after line \d+"):
        read_lines(packed)


@pytest.mark.plain
def test_files_with_a_damaged_byte(packed: Path) -> None:
    damaged = bytearray(packed.read_bytes())
    damaged[len(damaged) // 2] ^= 0x55
    packed.write_bytes(damaged)
    with pytest.raises(DataError, match=r"damaged or truncated after line \d+"):
        read_lines(packed)


@pytest.mark.plain
def test_files_that_are_not_what_their_name_says(packed: Path) -> None:
    packed.write_bytes(b"plain text\n")
    with pytest.raises(DataError, match=r"damaged or truncated after line 0"):
        read_lines(packed)


@pytest.mark.plain
def test_a_small_file_that_expands(packed: Path, monkeypatch) -> None:
    """The limits are lowered here: reading gigabytes is for benchmarks/hostile.py."""
    monkeypatch.setattr("glassformer.text.compression._SMALL", 1 << 20)
    monkeypatch.setattr("glassformer.text.compression._MOST_GROWTH", 2)
    packed.write_bytes(COMPRESSORS[packed.suffix](b"line\n" * (1 << 20)))
    with pytest.raises(DataError, match=r"it expands to more than [\d,]+ bytes, 2 times its size"):
        read_lines(packed)


@pytest.mark.plain
def test_a_window_that_no_text_needs(tmp_path: Path) -> None:
    """The header of an xz file may ask for gigabytes before the first line."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    (tmp_path / "a.xz").write_bytes(lzma.compress(TEXT, filters=filters))
    with pytest.raises(DataError, match=r"a.xz must be a complete .xz file; .*[Mm]emory"):
        read_lines(tmp_path / "a.xz")


@pytest.mark.plain
def test_zstd_without_a_reader(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.zst").write_bytes(b"")
    with pytest.raises(DataError, match=r"or the package zstandard; neither is installed"):
        read_lines(tmp_path / "a.zst")
