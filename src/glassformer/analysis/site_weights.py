"""The weights of one attention site as the residual stream sees them, head by head.

    score(x, y) = scale · (W_Q x)ᵀ (W_K y)        the QK circuit: W_QKᵀ = W_Kᵀ W_Q
    what y adds  = W_O W_V y                      the OV circuit: W_OV = W_O W_V

(Elhage et al. 2021). Both are C × C matrices of rank D: they are kept as pairs of factors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.norm_form import NormForm
from glassformer.tracing.stream import Transform


@dataclass(eq=False, frozen=True)
class Factors:
    """A matrix of low rank, left · rightᵀ, which is never formed unless asked for.

    >>> pair = Factors(torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]]))
    >>> pair.matrix()
    tensor([[3., 4.],
            [6., 8.]])
    >>> pair.eigenvalues().real
    tensor([11.], dtype=torch.float64)
    """

    left: Float[Tensor, "N D"]
    right: Float[Tensor, "M D"]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    def matrix(self) -> Float[Tensor, "N M"]:
        """The whole matrix."""
        return self.left @ self.right.mT

    def svd(self) -> tuple[Float[Tensor, "N D"], Float[Tensor, " D"], Float[Tensor, "M D"]]:
        """U, S, V of the matrix: U diag(S) Vᵀ, in float64, computed from the small factors."""
        ql, rl = torch.linalg.qr(self.left.double())
        qr, rr = torch.linalg.qr(self.right.double())
        u, s, vh = torch.linalg.svd(rl @ rr.mT)
        return ql @ u[:, : len(s)], s, qr @ vh.mT[:, : len(s)]

    def eigenvalues(self) -> Tensor:
        """Those that may differ from zero: left · rightᵀ and rightᵀ · left share them."""
        if len(self.left) != len(self.right):
            raise TraceError(f"Eigenvalues need a square matrix; this one is {self.shape}.")
        return torch.linalg.eigvals(self.right.double().mT @ self.left.double())

    def norm(self) -> float:
        """The Frobenius norm."""
        left, right = self.left.double(), self.right.double()
        return float(((left.mT @ left) * (right.mT @ right)).sum().clamp(min=0).sqrt())

    def __repr__(self) -> str:
        n, m = self.shape
        return f"Factors({n} × {m} of rank {self.left.shape[1]})"


@dataclass(eq=False, frozen=True, kw_only=True)
class SiteWeights:
    """The matrices of a site, with gain, centring and bias of the norm before it folded in.

    What remains of that norm is a division by the size of x: read `x / size` with these matrices.
    `refusals` says, by operand, why one has none.
    """

    name: str
    stack: str
    n_heads: int
    scale: float
    q: Float[Tensor, "H D C"]
    k: Float[Tensor, "K D X"]  # X is C, or the width of the context
    v: Float[Tensor, "K E X"]
    o: Float[Tensor, "H C E"] | None
    q_bias: Float[Tensor, "H D"]
    k_bias: Float[Tensor, "K D"]
    v_bias: Float[Tensor, "K E"]
    query_norm: NormForm | None  # of what it reads; None: the stream itself
    key_norm: NormForm | None
    positions: str | None = None  # "rotary" or "bias", where scores know of positions; else None
    frozen: tuple[str, ...] = ()
    refusals: dict[str, str] = field(default_factory=dict)
    is_cross: bool = False

    def key_head(self, head: int) -> int:
        """The head of keys and values that a head reads."""
        if not 0 <= head < self.n_heads:
            raise TraceError(f"{self.name} has heads 0 … {self.n_heads - 1}; got head={head}.")
        return head // (self.n_heads // len(self.k))

    def require(self, *operands: str) -> None:
        for operand in operands:
            if operand in self.refusals:
                raise TraceError(self.refusals[operand])

    def notes(self, *about: str) -> tuple[str, ...]:
        """What is left out, as far as it concerns queries, keys, values, positions …"""
        said = [*self.frozen]
        if self.positions is not None:
            said.append(f"positions ({self.positions}) are left out of QK")
        return tuple(note for note in said if any(word in note for word in about))

    def qk(self, head: int) -> Factors:
        """score(x, y) = xᵀ · this · y, without biases and positions."""
        key = self.key_head(head)
        self.require("q", "k")
        return Factors(self.scale * self.q[head].mT, self.k[key].mT)

    def ov(self, head: int) -> Factors:
        """What attending to y adds to the stream: this · y, without biases."""
        value = self.key_head(head)
        self.require("v", "o")
        assert self.o is not None
        return Factors(self.o[head], self.v[value].mT)

    def __repr__(self) -> str:
        kv = "" if len(self.k) == self.n_heads else f", {len(self.k)} of keys and values"
        missing = f"; without {', '.join(self.refusals)}" if self.refusals else ""
        _, D, C = self.q.shape
        return f"SiteWeights({self.name}: {self.n_heads} heads{kv}, {D} × {C}{missing})"


def divide_by_size(norm: NormForm | None, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
    """What is left of a norm once its gain, centring and bias are in a matrix."""
    if norm is None:
        return x
    centred = x - x.mean(-1, keepdim=True) if norm.is_centred else x
    return x / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()


def fold_reading(
    norm: NormForm | None, weight: Float[Tensor, "H D C"], bias: Float[Tensor, "H D"]
) -> tuple[Float[Tensor, "H D C"], Float[Tensor, "H D"]]:
    """A matrix after a norm, as one before it: its gain, centring and bias move into it."""
    if norm is None:
        return weight, bias
    if norm.bias is not None:
        bias = bias + weight @ norm.bias.to(weight)
    return pull_back(norm, weight), bias


def pull_back(norm: NormForm, rows: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
    """Rows that read after a norm, as rows before it: rows · linear part of the norm."""
    rows = rows if norm.gain is None else rows * norm.gain.to(rows)
    return rows - rows.mean(-1, keepdim=True) if norm.is_centred else rows


def linear_part(norm: NormForm, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
    """A norm without its division and its bias."""
    x = x - x.mean(-1, keepdim=True) if norm.is_centred else x
    return x if norm.gain is None else x * norm.gain.to(x)


def carry(x: Float[Tensor, "... C"], steps: Sequence[Transform]) -> Float[Tensor, "... C"]:
    """What norms and factors make of a vector, without the sizes that the norms divide by."""
    for step in steps:
        x = x * step.factor if step.norm is None else linear_part(step.norm, x)
    return x


def carry_back(rows: Float[Tensor, "... C"], steps: Sequence[Transform]) -> Float[Tensor, "... C"]:
    """Rows that read after norms and factors, as rows before them."""
    for step in reversed(steps):
        rows = rows * step.factor if step.norm is None else pull_back(step.norm, rows)
    return rows
