"""The header of a GGUF file, every size compared with the file before it is believed.

    magic version n_tensors n_fields │ fields │ tensor infos │ padding │ data

Tensors follow one another in the order of their infos, each padded to the alignment, and the
last one ends the file: as in ggml's own reader, extra bytes are an error.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.errors import CheckpointError
from glassformer.storage import open_regular

_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 10: "<Q", 11: "<q"}
_NUMBERS |= {12: "<d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_MOST_STRING = 1 << 24
_LEAST_FIELD, _LEAST_INFO = 8 + 4 + 1, 8 + 4 + 4 + 8  # bytes that each of them takes at least
_ALIGNMENT = 32

# Of each kind of data: numbers in a block, and the bytes of one. Kinds beyond these are refused
# when they are read; their sizes are needed to know where the others lie.
_BLOCKS = {
    "F32": (1, 4), "F16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22),
    "Q5_1": (32, 24), "Q8_0": (32, 34), "Q8_1": (32, 36), "Q2_K": (256, 84), "Q3_K": (256, 110),
    "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210), "Q8_K": (256, 292),
    "I8": (1, 1), "I16": (1, 2), "I32": (1, 4), "I64": (1, 8), "F64": (1, 8), "BF16": (1, 2),
}  # fmt: skip
_KINDS = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1",
    10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 24: "I8", 25: "I16",
    26: "I32", 27: "I64", 28: "F64", 30: "BF16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies in the file, and what it is; the first dimension varies slowest."""

    name: str
    kind: str
    shape: tuple[int, ...]
    start: int
    size: int


class GGUFHeader:
    """The fields and the tensors of a file, and the bytes of each tensor."""

    def __init__(self, path: Path) -> None:
        try:
            with open_regular(path) as file:
                self._bytes = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise CheckpointError(f"{path} is damaged or no GGUF file: {error}.") from None
        self._at = 0
        try:
            self._read()
        except _Damage as damage:
            raise CheckpointError(f"{path} is damaged or no GGUF file: {damage}.") from None

    def data(self, tensor: TensorInfo) -> np.ndarray:
        """The bytes of a tensor."""
        return np.frombuffer(self._bytes, np.uint8, tensor.size, tensor.start)

    def _read(self) -> None:
        if self._take(4) != b"GGUF":
            raise _Damage("it does not begin with GGUF")
        version = self._number("<I")
        if version not in (2, 3):
            raise _Damage(f"it is of version {version}, and 2 and 3 are known")
        n_tensors, n_fields = self._number("<Q"), self._number("<Q")
        self._check_room(n_tensors, _LEAST_INFO, "tensors")
        self._check_room(n_fields, _LEAST_FIELD, "fields")
        self.fields: dict[str, Any] = {}
        for _ in range(n_fields):
            name = self._string()
            if name in self.fields:
                raise _Damage(f"it has the field {name[:80]!r} twice")
            self.fields[name] = self._value(self._number("<I"), name)
        self.tensors = self._tensors(n_tensors)

    def _tensors(self, n: int) -> dict[str, TensorInfo]:
        infos = [self._info() for _ in range(n)]
        alignment = self.fields.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise _Damage(f"general.alignment must be a power of two, and is {alignment!r}")
        start = self._at + -self._at % alignment
        found: dict[str, TensorInfo] = {}
        at = end = 0
        for name, kind, shape, offset in infos:
            if name in found:
                raise _Damage(f"it has the tensor {name[:80]!r} twice")
            if offset != at:
                raise _Damage(f"{name[:80]} must lie at byte {at} of the data, not at {offset}")
            size = _size(name, kind, shape)
            found[name] = TensorInfo(name, kind, shape, start + at, size)
            end = start + at + size
            at += size + -size % alignment
        if infos and not end <= len(self._bytes) <= start + at:
            raise _Damage(f"its data must end at byte {end}, and the file at {len(self._bytes)}")
        return found

    def _info(self) -> tuple[str, str, tuple[int, ...], int]:
        name, n_dims = self._string(), self._number("<I")
        if not 1 <= n_dims <= 4:
            raise _Damage(f"{name[:80]} must have 1 to 4 dimensions, and has {n_dims}")
        shape = tuple(self._number("<Q") for _ in range(n_dims))[::-1]
        if 0 in shape:
            raise _Damage(f"{name[:80]} has a dimension of 0")
        kind = self._number("<I")
        if kind not in _KINDS:
            raise _Damage(f"{name[:80]} is of the unknown kind {kind}")
        return name, _KINDS[kind], shape, self._number("<Q")

    def _value(self, kind: int, name: str) -> Any:
        if kind != _ARRAY:
            return self._scalar(kind, name)
        inner, n = self._number("<I"), self._number("<Q")
        if inner in _NUMBERS:
            dtype = np.dtype(_NUMBERS[inner])
            self._check_room(n, dtype.itemsize, name)
            return np.frombuffer(self._take(n * dtype.itemsize), dtype).tolist()
        self._check_room(n, 8 if inner == _STRING else 1, name)
        if inner == _ARRAY:
            raise _Damage(f"{name[:80]} is an array of arrays")
        return [self._scalar(inner, name) for _ in range(n)]

    def _scalar(self, kind: int, name: str) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _STRING:
            return self._string()
        if kind == _BOOL:
            return self._take(1) != b"\0"
        raise _Damage(f"{name[:80]} is of the unknown type {kind}")

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _string(self) -> str:
        size = self._number("<Q")
        if size > _MOST_STRING:
            raise _Damage(f"it has a text of {size} bytes")
        try:
            return self._take(size).decode()
        except UnicodeDecodeError:
            raise _Damage("it has a text that is not UTF-8") from None

    def _take(self, size: int) -> bytes:
        self._check_room(size, 1, "bytes")
        self._at += size
        return bytes(self._bytes[self._at - size : self._at])

    def _check_room(self, n: int, least: int, what: str) -> None:
        left = len(self._bytes) - self._at
        if n * least > left:
            raise _Damage(f"it announces {n} {what[:80]}, and has {left} bytes left")


class _Damage(Exception):
    """What is wrong with a file, without its name."""


def _size(name: str, kind: str, shape: tuple[int, ...]) -> int:
    block, n_bytes = _BLOCKS[kind]
    if shape[-1] % block:
        raise _Damage(f"rows of {name[:80]} must be multiples of {block}, and have {shape[-1]}")
    count = 1
    for n in shape:
        count *= n
    return count // block * n_bytes
