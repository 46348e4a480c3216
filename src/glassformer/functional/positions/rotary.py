"""Rotary position embedding (RoPE): queries and keys are rotated by their positions.

Scores then depend only on distances (Su et al. 2021, arXiv:2104.09864). A head of D coordinates is
P = D / 2 pairs; pair i is rotated by the angle position × frequency, with frequency base^(−i / P).
The layout says which coordinates form a pair; a scaling extends the context beyond training.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional.positions.rotary_scalings import Length, Number, Pairs, Scaling

Layout = Literal["half", "interleaved"]
Device = torch.device | str | None
Positions = int | Real[Tensor, "..."]
Table = Float[Tensor, "... pairs"]


@dataclass(frozen=True, slots=True)
class Rotary:
    """The rotation of heads with `head_dim` coordinates; a call rotates queries and keys.

    ::

        (a, b) ↦ (a · cos θ − b · sin θ,  b · cos θ + a · sin θ),   θ = position · frequency

        layout "half":        a a a b b b · ·     pair i is (i, i + P)
        layout "interleaved": a b a b a b · ·     pair i is (2i, 2i + 1)

    With `rotary_dim`, only the first coordinates are rotated (the dots stay unchanged).

    >>> rotary = Rotary(8, rotary_dim=6)
    >>> q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 1, 5, 8)
    >>> places = torch.tensor([0, 1, 2, 3, 1_000_000])
    >>> turned, _ = rotary(q, k, places)
    >>> torch.equal(turned[:, :, 0], q[:, :, 0])  # place 0 turns by nothing
    True
    >>> cos, sin = rotary.tables(places)  # made once, used by every layer
    >>> torch.equal(rotary(q, k, (cos, sin))[0], turned)
    True
    """

    head_dim: int
    _: KW_ONLY
    base: Number = 10000.0
    layout: Layout = "half"
    scaling: Scaling | None = None
    rotary_dim: int | None = None

    def __post_init__(self) -> None:
        _check_widths(self.head_dim, self.rotary_dim)
        _check_layout(self.layout)
        if self.base <= 1:
            raise ConfigError(f"base must be greater than 1; got base={self.base}.")

    def frequencies(self, length: Length = None, *, device: Device = None) -> Pairs:
        """The angle per position of every pair, in float64."""
        n = (self.rotary_dim or self.head_dim) // 2
        plain = self.base ** -(torch.arange(n, dtype=torch.float64, device=device) / n)
        return plain if self.scaling is None else self.scaling.scale(plain, self.base, length)

    def tables(
        self,
        positions: Positions,
        *,
        length: Length = None,
        dtype: torch.dtype = torch.float32,
        device: Device = None,
    ) -> tuple[Table, Table]:
        """cos and sin of every angle, each positions.shape + (P,).

        `length` (default: the last position + 1) matters only to a dynamic scaling.
        """
        # float64: at position 1,000,000 the angles of float32 (24 bits) are off by hundredths.
        if isinstance(positions, int):
            if positions < 0:
                raise ConfigError(f"A length must be at least 0; got positions={positions}.")
            places = torch.arange(positions, dtype=torch.float64, device=device)
        else:
            places = positions.to(device=device, dtype=torch.float64)
        if length is None and places.numel() > 0:
            length = places.amax() + 1
        angles = places[..., None] * self.frequencies(length, device=places.device)
        magnitude = 1.0 if self.scaling is None else self.scaling.magnitude
        return (angles.cos() * magnitude).to(dtype), (angles.sin() * magnitude).to(dtype)

    def __call__(
        self,
        q: Float[Tensor, "B H L D"],
        k: Float[Tensor, "B K L D"],
        positions: Positions | tuple[Table, Table],
    ) -> tuple[Float[Tensor, "B H L D"], Float[Tensor, "B K L D"]]:
        """Rotate q and k by a length, positions of shape (L,) or (B, L), or `tables`."""
        if not q.shape[-1] == k.shape[-1] == self.head_dim:
            raise ShapeError(
                f"q and k must be head_dim={self.head_dim} wide; got widths {q.shape[-1]} and "
                f"{k.shape[-1]}."
            )
        if isinstance(positions, tuple):
            cos, sin = positions
        else:
            dtype = torch.promote_types(q.dtype, torch.float32)
            cos, sin = self.tables(positions, dtype=dtype, device=q.device)
        return rotate(q, cos, sin, layout=self.layout), rotate(k, cos, sin, layout=self.layout)


def rotate(
    x: Float[Tensor, "B H L D"], cos: Table, sin: Table, *, layout: Layout = "half"
) -> Float[Tensor, "B H L D"]:
    """Rotate the first 2P coordinates of x by tables of (L, P) or (B, L, P), at least in float32.

    >>> quarter_turn = torch.zeros(1, 1), torch.ones(1, 1)
    >>> rotate(torch.tensor([[[[3.0, 4.0, 5.0]]]]), *quarter_turn)
    tensor([[[[-4.,  3.,  5.]]]])
    """
    _check_layout(layout)
    fits = cos.shape == sin.shape and x.ndim == 4 and 2 <= cos.ndim <= 3
    fits = fits and cos.shape[-2] == x.shape[2] and 2 * cos.shape[-1] <= x.shape[-1]
    if not fits or (cos.ndim == 3 and cos.shape[0] not in (1, x.shape[0])):
        raise ShapeError(
            "cos and sin must be (L, P) or (B, L, P), 2P at most D, for x of (B, H, L, D); got cos "
            f"{tuple(cos.shape)} and sin {tuple(sin.shape)} for x {tuple(x.shape)}."
        )
    dtype = torch.promote_types(x.dtype, torch.float32)  # of the tables, and so of every product
    cos, sin = cos.unsqueeze(-3).to(dtype), sin.unsqueeze(-3).to(dtype)  # (…, 1, L, P)
    n = 2 * cos.shape[-1]
    if layout == "half":
        a, b = x[..., :n].chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    else:
        a, b = x[..., :n].unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
    turned = turned.to(x.dtype)
    return turned if n == x.shape[-1] else torch.cat((turned, x[..., n:]), dim=-1)


def interleaved_to_half(
    head_dim: int, rotary_dim: int | None = None, *, device: Device = None
) -> Int[Tensor, " D"]:
    """The permutation that converts interleaved coordinates to the half layout.

    Both layouts are the same rotation up to the order of coordinates: permuting the rows of the
    query and the key projection (of each head) alike leaves every score unchanged.

    >>> interleaved_to_half(8, 6)
    tensor([0, 2, 4, 1, 3, 5, 6, 7])
    """
    n = _check_widths(head_dim, rotary_dim)
    order = torch.arange(head_dim, device=device)
    return torch.cat((order[:n].unflatten(0, (-1, 2)).T.flatten(), order[n:]))


def half_to_interleaved(
    head_dim: int, rotary_dim: int | None = None, *, device: Device = None
) -> Int[Tensor, " D"]:
    """The inverse permutation of `interleaved_to_half`.

    >>> half_to_interleaved(8, 6)
    tensor([0, 3, 1, 4, 2, 5, 6, 7])
    """
    return interleaved_to_half(head_dim, rotary_dim, device=device).argsort()


def _check_widths(head_dim: int, rotary_dim: int | None) -> int:
    width = head_dim if rotary_dim is None else rotary_dim
    if not 2 <= width <= head_dim or width % 2:
        raise ConfigError(
            "The rotated width (rotary_dim, else head_dim) must be even, at least 2 and at most "
            f"head_dim; got head_dim={head_dim}, rotary_dim={rotary_dim}."
        )
    return width


def _check_layout(layout: str) -> None:
    if layout not in get_args(Layout):
        raise ConfigError(f"layout must be 'half' or 'interleaved'; got layout={layout!r}.")
