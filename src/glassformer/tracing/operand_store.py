"""Where operands are kept: on their device, on another one, and beyond a budget on disk.

What goes to disk is written to a file that is unlinked once it is mapped into memory: the system
reads it back on access, and nothing is left behind, however the program ends.
"""

import os
import re
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.head_shards import as_plain

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class OperandStore:
    """Keeps tensors in memory up to a budget, and the rest on disk.

    >>> store = OperandStore(budget="1 KiB")
    >>> kept = [store.keep(torch.full((100,), i)) for i in range(3)]
    >>> store.in_memory, store.on_disk, int(kept[2][99])
    (800, 1600, 2)
    """

    def __init__(
        self,
        device: torch.device | str | None = None,
        budget: int | str | None = None,
        folder: str | Path | None = None,
    ) -> None:
        self.device = device
        self.budget = None if budget is None else parse_bytes(budget)
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None and not self.folder.is_dir():
            raise TraceError(f"folder must be there to keep operands in; {self.folder} is not.")
        self.in_memory = self.on_disk = 0

    def keep(self, tensor: Tensor) -> Tensor:
        """The tensor itself, or a copy of it on the chosen device or on disk."""
        tensor = as_plain(tensor)
        if self.budget is not None and self.in_memory + tensor.nbytes > self.budget:
            return self._write(tensor)
        kept = tensor if self.device is None else tensor.to(self.device)
        return self._count(kept)

    def reserve(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Room for what will be kept, with the dtype and the device of a tensor; not filled yet."""
        n_bytes = torch.Size(shape).numel() * like.dtype.itemsize
        if self.budget is not None and self.in_memory + n_bytes > self.budget:
            return self._map_file(shape, like.dtype, None)
        device = like.device if self.device is None else self.device
        return self._count(torch.empty(shape, dtype=like.dtype, device=device))

    def concatenate(self, parts: Sequence[Tensor], dim: int) -> Tensor:
        """Tensors concatenated into one, which is kept like all the others."""
        if len(parts) == 1:
            return parts[0]
        if len({part.device for part in parts}) > 1:
            parts = [part.cpu() for part in parts]
        size = sum(part.nbytes for part in parts)
        if self.budget is None or self.in_memory + size <= self.budget:
            return self._count(torch.cat(list(parts), dim=dim))
        shape = list(parts[0].shape)
        shape[dim] = sum(part.shape[dim] for part in parts)
        whole = self._map_file(tuple(shape), parts[0].dtype, None)
        start = 0
        for part in parts:
            whole.narrow(dim, start, part.shape[dim]).copy_(part)
            start += part.shape[dim]
        return whole

    def _count(self, tensor: Tensor) -> Tensor:
        kept = tensor.view_as(tensor)  # a view that lives as long as we keep it
        self.in_memory += kept.nbytes
        weakref.finalize(kept, self._forget, kept.nbytes)
        return kept

    def _forget(self, n_bytes: int) -> None:
        self.in_memory -= n_bytes

    def _write(self, tensor: Tensor) -> Tensor:
        plain = tensor.detach().cpu().contiguous()
        return self._map_file(tuple(plain.shape), plain.dtype, plain)

    def _map_file(
        self, shape: tuple[int, ...], dtype: torch.dtype, content: Tensor | None
    ) -> Tensor:
        n = max(torch.Size(shape).numel() * dtype.itemsize, 1)
        try:
            handle, name = tempfile.mkstemp(prefix="glassformer-", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    if content is None:
                        _reserve(file.fileno(), n)
                    else:
                        content.flatten().view(torch.uint8).numpy().tofile(file)
                        file.truncate(n)
                mapped = torch.from_file(name, shared=True, size=n, dtype=torch.uint8)
            finally:
                Path(name).unlink()
        except OSError as error:
            raise TraceError(
                f"Operands beyond the budget go to {self.folder or tempfile.gettempdir()}; that "
                f"failed: {error.strerror}. Choose another folder, or keep less: layers, heads, "
                "rows."
            ) from None
        self.on_disk += n
        return mapped[: torch.Size(shape).numel() * dtype.itemsize].view(dtype).view(shape)


def parse_bytes(amount: int | str) -> int:
    """A number of bytes as people write it: 2_000_000, "500 MiB", "4G"."""
    if isinstance(amount, int) and amount >= 0:
        return amount
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", str(amount), re.IGNORECASE)
    if found is None:
        raise TraceError(f'A budget must be bytes, or written as "500 MiB"; got {amount!r}.')
    return int(float(found[1]) * _UNITS[found[2].lower()])


def _reserve(handle: int, n: int) -> None:
    """Reserve the space now: a full disk raises here, instead of a signal when pages are filled."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, n)
    else:
        os.write(handle, bytes(n))
