"""Files of text as bytes, compressed or not; the ending of the name says how.

.gz .bz2 .xz    by Python itself
.zst            by Python 3.14, or by the package zstandard
"""

import bz2
import gzip
import importlib
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glassformer.errors import DataError

# What reading may raise; zstd's errors are made into these.
READING_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
_CHUNK = 1024  # small: a byte of zstd may stand for thousands


def opened(path: Path) -> io.BufferedIOBase:
    """The uncompressed bytes of a file; reading on may raise READING_ERRORS."""
    openers: dict[str, Callable[[], Any]] = {
        ".gz": lambda: gzip.GzipFile(path, "rb"),
        ".bz2": lambda: bz2.BZ2File(path, "rb"),
        ".xz": lambda: lzma.LZMAFile(path, "rb"),  # noqa: SIM115 (the caller closes it)
        ".zst": lambda: _zstd(path),
    }
    try:
        return openers.get(path.suffix, lambda: path.open("rb"))()
    except READING_ERRORS as error:
        raise damage(path, error, behind=0) from None


def damage(path: Path, error: Exception, *, behind: int) -> DataError:
    """The sentence on a file that cannot be read behind a line."""
    if isinstance(error, OSError) and error.errno is not None:  # bz2 and gzip have no number
        return DataError(f"{path} cannot be read: {error.strerror}.")
    what = str(error).rstrip(".") or type(error).__name__
    return DataError(
        f"{path} must be a whole {path.suffix} file; it is damaged or cut off behind line "
        f"{behind}: {what}. Fetch it again, or compress it anew."
    )


def _zstd(path: Path) -> io.BufferedIOBase:
    try:  # Python 3.14
        zstd = importlib.import_module("compression.zstd")
    except ImportError:
        try:
            zstd = importlib.import_module("zstandard")
        except ImportError:
            raise DataError(
                f"To read {path} Python 3.14 or the package zstandard must be there; neither is. "
                "Run: pip install zstandard"
            ) from None
        return io.BufferedReader(
            _Zstd(path, lambda: zstd.ZstdDecompressor().decompressobj(), zstd.ZstdError)
        )
    return io.BufferedReader(_Zstd(path, zstd.ZstdDecompressor, zstd.ZstdError))


class _Zstd(io.RawIOBase):
    """Frame after frame of a zstd file. The package's own reader takes a file that breaks off for
    one that ends."""

    def __init__(self, path: Path, frame: Callable[[], Any], error: type[Exception]) -> None:
        self._file, self._frame, self._error = path.open("rb"), frame, error
        self._now: Any = None  # the frame that is open
        self._ready, self._raw = b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            raw = self._raw or self._file.read(_CHUNK)
            self._raw = b""
            if not raw:
                if self._now is not None:
                    raise EOFError("the last frame breaks off")
                return 0
            if self._now is None:
                self._now = self._frame()
            try:
                self._ready = self._now.decompress(raw)
            except self._error as error:
                raise EOFError(str(error)) from None
            if self._now.eof:
                self._raw, self._now = self._now.unused_data, None
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n

    def close(self) -> None:
        self._file.close()
        super().close()
