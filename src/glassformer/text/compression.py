"""Text files as bytes, compressed or not, by file extension.

.gz .bz2 .xz    standard library
.zst            Python 3.14, or the package zstandard
"""

import bz2
import importlib
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glassformer.errors import DataError
from glassformer.installation import install_command

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
# What reading may raise; zstd's errors are converted to these.
READING_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
_CHUNK = 1024  # small: one byte of zstd may expand to thousands
_PIECE = 1 << 16
_MOST_MEMORY = 256 << 20  # limit of a decoder: the largest windows of xz -9 and zstd -22
_MOST_GROWTH = 500  # times the size of the file; log files reach fifty
_SMALL = 64 << 20  # bytes of text that any file may expand to


def open_decompressed(path: Path) -> io.BufferedReader:
    """Open a file as uncompressed bytes; reading may raise READING_ERRORS."""
    openers: dict[str, Callable[[], io.RawIOBase]] = {
        ".gz": lambda: _Frames(path, lambda: zlib.decompressobj(wbits=31)),
        ".bz2": lambda: _Frames(path, bz2.BZ2Decompressor),
        ".xz": lambda: _Frames(path, lambda: lzma.LZMADecompressor(memlimit=_MOST_MEMORY)),
        ".zst": lambda: _zstd(path),
    }
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe may never end
            raise DataError(f"{path} cannot be read: it is not a regular file.")
        if path.suffix not in openers:
            return path.open("rb")
        return io.BufferedReader(openers[path.suffix](), _PIECE)
    except READING_ERRORS as error:
        raise damage_error(path, error, behind=0) from None
    except DataError:
        raise
    except ValueError:
        raise DataError(f"A file name must not contain null characters: {str(path)!r}.") from None


def damage_error(path: Path, error: Exception, *, behind: int) -> DataError:
    """The error for a file that cannot be read after a given line."""
    if isinstance(error, OSError) and error.errno is not None:  # errors of bz2 and gzip have none
        return DataError(f"{path} cannot be read: {error.strerror}.")
    what = str(error).rstrip(".") or type(error).__name__
    return DataError(
        f"{path} must be a complete {path.suffix} file; it is damaged or truncated after line "
        f"{behind}: {what}. Download or compress it again."
    )


def _zstd(path: Path) -> io.RawIOBase:
    try:  # Python 3.14
        zstd = importlib.import_module("compression.zstd")
    except ImportError:
        try:
            zstd = importlib.import_module("zstandard")
        except ImportError:
            raise DataError(
                f"Reading {path} needs Python 3.14 or the package zstandard; neither is installed. "
                f"Run: {install_command('zstd')}"
            ) from None
        limited = zstd.ZstdDecompressor(max_window_size=_MOST_MEMORY // 2)
        return _Frames(path, limited.decompressobj, zstd.ZstdError)
    options = {zstd.DecompressionParameter.window_log_max: (_MOST_MEMORY // 2).bit_length() - 1}
    return _Frames(path, lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError)


class _Frames(io.RawIOBase):
    """A reader of the frames of a compressed file, with bounded memory.

    The libraries' own readers take a truncated file for a complete one, or trust a header that asks
    for gigabytes. Decompression bombs are rejected while reading.
    """

    def __init__(
        self, path: Path, frame: Callable[[], Any], error: type[Exception] = zlib.error
    ) -> None:
        self._file, self._frame, self._error = path.open("rb"), frame, error
        self._most = max(_SMALL, _MOST_GROWTH * path.stat().st_size)
        self._now: Any = None  # the open frame
        self._ready, self._raw = b"", b""
        self._n = 0  # bytes returned so far

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            waits = self._now is not None and not getattr(self._now, "needs_input", True)
            raw = b"" if waits else self._raw or self._file.read(_CHUNK)
            self._raw = b""
            if not raw and not waits:
                if self._now is not None:
                    raise EOFError("the last frame is truncated")
                return 0
            self._ready = self._decompress(raw)
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        self._n += n
        if self._n > self._most:
            raise EOFError(
                f"it expands to more than {self._most:,} bytes, {_MOST_GROWTH} times its size"
            )
        return n

    def _decompress(self, raw: bytes) -> bytes:
        if self._now is None:
            raw = raw.lstrip(b"\0")  # padding between frames and after the last
            if not raw:
                return b""
            self._now = self._frame()
        # A kilobyte of bz2 may expand to a gigabyte; the other decoders have no such limit.
        most = (_PIECE,) if hasattr(self._now, "needs_input") else ()
        try:
            found = self._now.decompress(raw, *most)
        except (self._error, MemoryError) as error:
            raise EOFError(str(error) or "it asks for too much memory") from None
        if self._now.eof:
            self._raw, self._now = self._now.unused_data, None
        return found

    def close(self) -> None:
        self._file.close()
        super().close()
