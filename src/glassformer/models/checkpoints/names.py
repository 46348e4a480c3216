"""Two columns: a tensor of ours, and what it is made of in a foreign checkpoint.

    decoder.blocks.{i}.attention.qkv.{x}    model.layers.{i}.self_attn.[q|k|v]_proj.{x}

{i} is the number of a layer and {x} is weight or bias; {e}, on the right alone, is the number of an
expert, whose tensors are stacked in ours. The right column reads like PyTorch, and is followed in
both directions:

    a             the tensor a
    a.T           transposed
    a[2:]         without its first two rows, which are zeros when written back
    a[0]          its only row
    [q|k|v]       several tensors, one below the other in ours
    a = b         one tensor under several names: any may be there, all must agree, a is written
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.errors import CheckpointError
from glassformer.models.config import Config

Columns = Sequence[tuple[str, str]]
Get = Callable[[str], Tensor]

_FORM = re.compile(r"^(?P<name>.*?)(?P<form>\.T|\[\d+:\]|\[0\])?$")
_PARTS = re.compile(r"\[([^\]|]+(?:\|[^\]|]+)+)\]")


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of one of our tensors: the right column, with its layer filled in."""

    parts: tuple[str, ...]  # one below the other
    copies: tuple[str, ...]  # other names of the same tensor
    form: str
    n_stacked: int = 0  # how many experts share the parts; 0 for a tensor that is not stacked

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.parts, *self.copies)

    def missing(self, available: set[str]) -> list[str]:
        """The names without which our tensor cannot be made."""
        if any(copy in available for copy in self.copies):
            return []
        return [name for name in self.parts if name not in available]

    def read(self, get: Get, available: set[str], sizes: Sequence[int]) -> Tensor:
        """Our tensor, made of foreign ones; `sizes` are the rows that each part must have."""
        if self.n_stacked or len(self.parts) > 1:
            pieces = [self._apply_form(get(name)) for name in self.parts]
            all_sizes = self._spread_sizes(sizes)
            for name, piece, rows in zip(self.parts, pieces, all_sizes, strict=True):
                if piece.shape != (rows, *pieces[0].shape[1:]):
                    raise CheckpointError(
                        f"{name} must have {rows} rows of shape {tuple(pieces[0].shape[1:])} by "
                        f"the config; it has shape {tuple(piece.shape)}."
                    )
            joined = torch.cat(pieces)
            return joined.unflatten(0, (self.n_stacked, -1)) if self.n_stacked else joined
        present = [name for name in self.names if name in available]
        first = get(present[0])
        for name in present[1:]:
            if not is_same(get(name), first):
                raise CheckpointError(
                    f"{present[0]} and {name} must be one and the same tensor by the config; they "
                    "differ. The config belongs to other weights, or a file is damaged."
                )
        return self._apply_form(first)

    def write(self, tensor: Tensor, sizes: Sequence[int]) -> Iterator[tuple[str, Tensor]]:
        """The foreign tensors that ours is made of."""
        tensor = tensor.flatten(0, 1) if self.n_stacked else tensor
        is_joined = self.n_stacked or len(self.parts) > 1
        pieces = tensor.split(self._spread_sizes(sizes)) if is_joined else [tensor]
        for name, piece in zip(self.parts, pieces, strict=True):
            yield name, self._undo_form(piece).contiguous()

    def _spread_sizes(self, sizes: Sequence[int]) -> list[int]:
        """The rows of all parts, from those of one expert."""
        n = max(1, self.n_stacked)
        return [*sizes] * n if len(self.parts) // n > 1 else [sum(sizes)] * n

    def _apply_form(self, tensor: Tensor) -> Tensor:
        if not self.form:
            return tensor
        if (self.form == ".T" and tensor.ndim != 2) or (self.form == "[0]" and tensor.ndim < 2):
            raise CheckpointError(
                f"{self.parts[0]} must be a matrix; it has shape {tuple(tensor.shape)}."
            )
        if self.form == ".T":
            return tensor.T
        n = 1 if self.form == "[0]" else int(self.form[1:-2])
        if tensor.ndim == 0 or (len(tensor) != 1 if self.form == "[0]" else len(tensor) < n):
            raise CheckpointError(
                f"{self.parts[0]} must have {'one row' if n == 1 else f'at least {n} rows'}; it "
                f"has shape {tuple(tensor.shape)}."
            )
        return tensor[0] if self.form == "[0]" else tensor[n:]

    def _undo_form(self, tensor: Tensor) -> Tensor:
        if self.form == ".T":
            return tensor.T
        if self.form == "[0]":
            return tensor[None]
        if self.form:
            return torch.cat([tensor.new_zeros(int(self.form[1:-2]), *tensor.shape[1:]), tensor])
        return tensor


def is_same(a: Tensor, b: Tensor) -> bool:
    """Whether two saved tensors are one; torch.equal itself raises for two dtypes."""
    return a.dtype == b.dtype and torch.equal(a, b)


class Table:
    """The two columns of an architecture; {e} counts up to `n_experts`."""

    def __init__(self, columns: Columns, n_experts: int = 0) -> None:
        self.columns, self.n_experts = columns, n_experts
        self._patterns = [(_pattern(ours), theirs) for ours, theirs in columns]

    def origin(self, name: str) -> Origin | None:
        """What our tensor of this name is made of; None where the table does not know it."""
        for pattern, theirs in self._patterns:
            if found := pattern.fullmatch(name):
                return _origin(theirs.format(**found.groupdict(), e="{e}"), self.n_experts)
        return None


def part_sizes(name: str, shape: Sequence[int], config: Config) -> list[int]:
    """How the rows of a joined tensor of ours divide: q, k, v by their heads, others in halves.

    Of stacked tensors, those of one expert.
    """
    if ".qkv." in name:
        kv = config.n_kv_heads * config.head_dim
        return [config.n_heads * config.head_dim, kv, kv]
    rows = shape[1] if ".expert_" in name else shape[0]
    return [rows // 2, rows - rows // 2]


def _pattern(ours: str) -> re.Pattern[str]:
    escaped = (
        re.escape(ours).replace(r"\{i\}", r"(?P<i>\d+)").replace(r"\{x\}", "(?P<x>weight|bias)")
    )
    return re.compile(escaped)


def _origin(theirs: str, n_experts: int) -> Origin:
    first, *copies = theirs.split(" = ")
    found = _FORM.fullmatch(first)
    assert found is not None
    name, form = found["name"], found["form"] or ""
    parts = [name]
    if joined := _PARTS.search(name):
        before, after = name[: joined.start()], name[joined.end() :]
        parts, copies = [before + each + after for each in joined[1].split("|")], []
    if "{e}" in name:
        numbered = (part.replace("{e}", str(e)) for e in range(n_experts) for part in parts)
        return Origin(tuple(numbered), (), form, n_experts)
    return Origin(tuple(parts), tuple(copies), form)
