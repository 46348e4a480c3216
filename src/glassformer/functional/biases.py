"""Biases on the scores: formulas over cells, like masks, but with real values and gradients.

Combine biases with `+`. They are added in float32 or better, after scaling and soft-capping.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, TypeGuard

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, DtypeError, ShapeError
from glassformer.functional.cells import Cells, Extent, Tile, as_4d, cut_tile, pick_cells
from glassformer.functional.masks.positional import Offset, check_offset


@dataclass(frozen=True, eq=False)
class Bias(ABC):
    """A number for every cell (b, h, q, k), added to its score.

    >>> bias: Bias = ALiBi(torch.tensor([0.5]))
    >>> from glassformer.functional import attention_weights
    >>> q, k = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 3, 2)
    >>> attention_weights(q, k, bias=bias)[0, 0]  # less for each token of distance
    tensor([[0.1863, 0.3072, 0.5065]])
    """

    @abstractmethod
    def values(self, cells: Cells) -> Float[Tensor, "..."]:
        """The formula, in float32 or better."""

    @abstractmethod
    def accumulate(self, sums: tuple[Tensor, ...], grad: Tensor, tile: Tile) -> None:
        """Add the gradient of a tile, (B, H, R, C), to one sum for each of `tensors()`."""

    def tensors(self) -> tuple[Tensor, ...]:
        """The learnable tensors, which receive gradients."""
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(v for v in values if _is_floating(v))

    def with_tensors(self, tensors: tuple[Tensor, ...]) -> "Bias":
        """The same bias with other tensors instead of `tensors()`."""
        learned = [f.name for f in fields(self) if _is_floating(getattr(self, f.name))]
        return replace(self, **dict(zip(learned, tensors, strict=True)))

    @property
    def is_data(self) -> bool:
        """True if the values are entries of `tensors()`, False if a formula computes them."""
        return True

    @property
    def is_relative(self) -> bool:
        """Whether values depend on the head and on query − key alone, in every sequence alike."""
        return False

    def by_distance(
        self, extent: Extent, n_more: int, device: torch.device
    ) -> Float[Tensor, "h d"]:
        """The values of a relative bias for query − key = 1 − S … L − 1 and `n_more` beyond."""
        distances = torch.arange(1 - extent.S, extent.L + n_more, device=device)
        heads = torch.arange(extent.H, device=device)[:, None]
        first = torch.zeros((), dtype=torch.long, device=device)
        return self.values(Cells(first, heads, distances, first, extent.L, extent.S))

    def is_exact_in(self, dtype: torch.dtype) -> bool:
        """Whether this dtype represents every value without rounding."""
        return all(torch.promote_types(t.dtype, dtype) == dtype for t in self.tensors())

    def tile(self, tile: Tile) -> Float[Tensor, "..."]:
        """The bias inside a rectangle, broadcastable to (B, H, R, C)."""
        return self.values(tile.cells())

    def fit_to(self, extent: Extent, device: torch.device) -> "Bias":
        """Check this bias against the shapes and the device it is used with."""
        del extent
        for tensor in self.tensors():
            if tensor.device != device:
                raise DtypeError(
                    f"A bias must be on the device of q; got {type(self).__name__} on "
                    f"{tensor.device} and q on {device}. Use bias.to({str(device)!r})."
                )
        return self

    def to(self, device: torch.device | str) -> "Bias":
        """The same bias with its tensors on another device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{n: v.to(device) for n, v in values.items() if isinstance(v, Tensor | Bias)}
        )

    def __add__(self, other: "Bias | Tensor") -> "Bias":
        return BiasSum(self, as_bias(other))

    __radd__ = __add__


@dataclass(frozen=True, eq=False)
class ALiBi(Bias):
    """Distant keys score lower: `−slope_h · |distance|` (Press et al. 2022).

    >>> ALiBi.of_heads(8).slopes[:3].tolist()
    [0.5, 0.25, 0.125]
    """

    slopes: Float[Tensor, " H"]
    offset: Offset = None

    @classmethod
    def of_heads(cls, n_heads: int, device: torch.device | str = "cpu") -> "ALiBi":
        """The paper's slopes: a geometric series from 2^(−8/n).

        If n_heads is not a power of two, every other slope of the next power of two fills up.
        """
        if n_heads < 1:
            raise ConfigError(f"ALiBi needs at least one head; got n_heads={n_heads}.")
        whole = 2 ** int(math.log2(n_heads))
        slopes = [2 ** (-8 * i / whole) for i in range(1, whole + 1)]
        between = [2 ** (-4 * i / whole) for i in range(1, 2 * whole + 1, 2)]
        slopes = torch.tensor((slopes + between)[:n_heads], dtype=torch.float32, device=device)
        return cls(slopes)

    def values(self, cells: Cells) -> Float[Tensor, "..."]:
        distance = (cells.k - cells.query_positions(self.offset)).abs()
        return -_at_least_float32(self.slopes)[cells.h] * distance

    def accumulate(self, sums: tuple[Tensor, ...], grad: Tensor, tile: Tile) -> None:
        cells = tile.cells()
        distance = (cells.k - cells.query_positions(self.offset)).abs()
        sums[0].sub_((grad * distance).sum((0, 2, 3)))

    @property
    def is_data(self) -> bool:
        return False

    @property
    def is_relative(self) -> bool:
        return self.offset is None

    def is_exact_in(self, dtype: torch.dtype) -> bool:
        return dtype in (torch.float32, torch.float64)  # slope · distance needs many bits

    def fit_to(self, extent: Extent, device: torch.device) -> Bias:
        check_offset(self.offset, extent)
        _check_heads("ALiBi slopes", self.slopes.shape, (extent.H,))
        return super().fit_to(extent, device)


@dataclass(frozen=True, eq=False)
class RelativeBuckets(Bias):
    """A learned number per head and bucket of distances (Raffel et al. 2020, T5, §2.1).

    Half of the buckets hold single distances, the other half grow logarithmically up to
    `max_distance`; with `bidirectional` they are split between keys behind and keys ahead.

    >>> bias = RelativeBuckets(torch.arange(8.0)[:, None], max_distance=16)
    >>> from glassformer.functional import attention_weights
    >>> q, k = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 4, 2)
    >>> attention_weights(q, k, bias=bias)[0, 0]  # distances 3 and 2 share a bucket
    tensor([[0.3995, 0.3995, 0.1470, 0.0541]])
    """

    table: Float[Tensor, "buckets H"]
    bidirectional: bool = True
    max_distance: int = 128
    offset: Offset = None

    @property
    def is_relative(self) -> bool:
        return self.offset is None

    def __post_init__(self) -> None:
        least = 4 if self.bidirectional else 2
        n_buckets = self.table.shape[0] if self.table.ndim else 0
        if n_buckets < least or n_buckets % least:
            raise ConfigError(
                f"RelativeBuckets needs a table (buckets, n_heads) whose buckets are a multiple of "
                f"{least}; got shape {tuple(self.table.shape)}."
            )
        exact = n_buckets // least
        if self.max_distance <= exact:
            raise ConfigError(
                f"max_distance must exceed the {exact} distances that have buckets of their own; "
                f"got {self.max_distance}."
            )

    def buckets(self, ahead: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """The bucket of a distance from query to key, positive if the key is ahead."""
        n_buckets = self.table.shape[0]
        base = torch.zeros_like(ahead)
        if self.bidirectional:
            n_buckets //= 2
            base = (ahead > 0) * n_buckets
            distance = ahead.abs()
        else:
            distance = (-ahead).clamp(min=0)
        exact = n_buckets // 2
        octaves = torch.log(distance.clamp(min=1).float() / exact) / math.log(
            self.max_distance / exact
        )
        far = exact + (octaves * (n_buckets - exact)).long()
        return base + torch.where(distance < exact, distance, far.clamp(max=n_buckets - 1))

    def values(self, cells: Cells) -> Float[Tensor, "..."]:
        buckets = self.buckets(cells.k - cells.query_positions(self.offset))
        return _at_least_float32(self.table)[buckets, cells.h]

    def accumulate(self, sums: tuple[Tensor, ...], grad: Tensor, tile: Tile) -> None:
        cells = tile.cells()
        buckets = self.buckets(cells.k - cells.query_positions(self.offset))
        buckets = buckets.expand(len(grad), 1, *grad.shape[2:]).flatten()
        sums[0].index_add_(0, buckets, grad.movedim(1, -1).flatten(0, 2))  # (B·R·C, H)

    def fit_to(self, extent: Extent, device: torch.device) -> Bias:
        check_offset(self.offset, extent)
        _check_heads("RelativeBuckets(table)", self.table.shape[1:], (extent.H,))
        return super().fit_to(extent, device)


@dataclass(frozen=True, eq=False)
class ExplicitBias(Bias):
    """A tensor, (L, S) or broadcastable to (B, H, L, S).

    >>> bias = ExplicitBias(torch.tensor([[0.0, -1.0], [0.5, 0.0]]))
    >>> from glassformer.functional import attention_weights
    >>> q = torch.zeros(1, 1, 2, 4)
    >>> attention_weights(q, q, bias=bias)[0, 0]
    tensor([[0.7311, 0.2689],
            [0.6225, 0.3775]])
    """

    tensor: Float[Tensor, "..."]

    def __post_init__(self) -> None:
        if not self.tensor.is_floating_point():
            raise DtypeError(
                f"bias is added to the scores and must be floating; got {self.tensor.dtype}. "
                "Pass a bool tensor as mask=."
            )
        if self.tensor.ndim not in (2, 4):
            raise ShapeError(
                f"bias must have rank 2, (L, S), or rank 4, (B, H, L, S); got shape "
                f"{tuple(self.tensor.shape)}. Use bias[:, None] for one per sequence, "
                "bias[None] for one per head."
            )

    def values(self, cells: Cells) -> Float[Tensor, "..."]:
        return _at_least_float32(pick_cells(as_4d(self.tensor), cells))

    def tile(self, tile: Tile) -> Float[Tensor, "..."]:
        return _at_least_float32(cut_tile(as_4d(self.tensor), tile))

    def accumulate(self, sums: tuple[Tensor, ...], grad: Tensor, tile: Tile) -> None:
        total = as_4d(sums[0])
        shared = [d for d, n in enumerate(total.shape) if n == 1]
        grad = grad.sum(shared, keepdim=True) if shared else grad
        cut_tile(total, tile).add_(grad)  # a view: the tiles of a plan are slices

    def fit_to(self, extent: Extent, device: torch.device) -> Bias:
        if any(n not in (1, m) for n, m in zip(as_4d(self.tensor).shape, extent, strict=True)):
            raise ShapeError(
                f"bias must broadcast to (B, H, L, S) = {tuple(extent)}; got "
                f"{tuple(self.tensor.shape)}."
            )
        return super().fit_to(extent, device)


@dataclass(frozen=True, eq=False)
class BiasSum(Bias):
    """The sum of two biases."""

    a: Bias
    b: Bias

    def values(self, cells: Cells) -> Float[Tensor, "..."]:
        return self.a.values(cells) + self.b.values(cells)

    def tile(self, tile: Tile) -> Float[Tensor, "..."]:
        return self.a.tile(tile) + self.b.tile(tile)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.a.tensors() + self.b.tensors()

    def with_tensors(self, tensors: tuple[Tensor, ...]) -> Bias:
        n = len(self.a.tensors())
        return BiasSum(self.a.with_tensors(tensors[:n]), self.b.with_tensors(tensors[n:]))

    @property
    def is_data(self) -> bool:
        return self.a.is_data and self.b.is_data

    @property
    def is_relative(self) -> bool:
        return self.a.is_relative and self.b.is_relative

    def accumulate(self, sums: tuple[Tensor, ...], grad: Tensor, tile: Tile) -> None:
        n = len(self.a.tensors())
        self.a.accumulate(sums[:n], grad, tile)
        self.b.accumulate(sums[n:], grad, tile)

    def is_exact_in(self, dtype: torch.dtype) -> bool:
        return dtype in (torch.float32, torch.float64)

    def fit_to(self, extent: Extent, device: torch.device) -> Bias:
        return BiasSum(self.a.fit_to(extent, device), self.b.fit_to(extent, device))


def as_bias(bias: Any) -> Bias:
    """A bias unchanged, a floating-point tensor as `ExplicitBias`; anything else is an error."""
    if isinstance(bias, Bias):
        return bias
    if isinstance(bias, Tensor):
        return ExplicitBias(bias)
    raise DtypeError(
        f"bias must be a bias value such as gf.ALiBi.of_heads(8) or a floating tensor; got "
        f"{type(bias).__name__}."
    )


def _is_floating(value: Any) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.is_floating_point()


def _at_least_float32(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def _check_heads(name: str, shape: torch.Size, expected: tuple[int, ...]) -> None:
    if tuple(shape) != expected:
        raise ShapeError(
            f"{name} must have one value per query head, n_heads={expected[0]}; got {tuple(shape)}."
        )
