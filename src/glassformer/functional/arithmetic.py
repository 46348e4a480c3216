"""Attention step by step: one row or one cell of the matrix, with every operand.

Computed in float64 from the operands and returned as data, which renderers display.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.errors import ShapeError
from glassformer.functional.biases import Bias
from glassformer.functional.cells import Tile
from glassformer.functional.checks import check_scoring, check_values
from glassformer.functional.masks import Mask


@dataclass(frozen=True, eq=False)
class RowArithmetic:
    """One query against every key, step by step: dot products, scores, weights, weighted sum."""

    dots: Float[Tensor, " S"]  # q · k
    scale: float
    scaled: Float[Tensor, " S"]  # dots · scale
    softcap: float | None
    capped: Float[Tensor, " S"]  # softcap · tanh(scaled / softcap), or scaled itself
    bias: Float[Tensor, " S"]  # zeros where there is none
    allowed: Bool[Tensor, " S"]
    scores: Float[Tensor, " S"]  # capped + bias, −∞ where not allowed
    largest: float  # the largest score, subtracted before exp to avoid overflow
    exps: Float[Tensor, " S"]  # exp(scores − largest)
    total: float  # Σ exps
    weights: Float[Tensor, " S"]  # exps / total, zeros if nothing is allowed
    q: Float[Tensor, " D"] | None = None
    k: Float[Tensor, "S D"] | None = None
    v: Float[Tensor, "S E"] | None = None
    out: Float[Tensor, " E"] | None = None  # Σ weights · v

    @classmethod
    def of_dots(
        cls,
        dots: Float[Tensor, " S"],
        *,
        scale: float = 1.0,
        softcap: float | None = None,
        bias: Float[Tensor, " S"] | None = None,
        allowed: Bool[Tensor, " S"] | None = None,
        v: Float[Tensor, "S E"] | None = None,
    ) -> "RowArithmetic":
        """The steps from the dot products to the weights.

        >>> row = RowArithmetic.of_dots(torch.tensor([12.5, 30.8, 25.1]), scale=1 / 8)
        >>> row.weights
        tensor([0.0638, 0.6282, 0.3081], dtype=torch.float64)
        """
        dots = dots.double()
        bias = torch.zeros_like(dots) if bias is None else bias.double()
        allowed = torch.ones_like(dots, dtype=torch.bool) if allowed is None else allowed
        scaled = dots * scale
        capped = scaled if softcap is None else softcap * torch.tanh(scaled / softcap)
        scores = (capped + bias).masked_fill(~allowed, -torch.inf)
        largest = float(scores.max()) if len(scores) else -torch.inf
        exps = torch.exp(scores - largest) if largest > -torch.inf else torch.zeros_like(scores)
        if scores.isnan().any():  # NaN stays visible
            exps = torch.full_like(scores, torch.nan)
        total = float(exps.sum())
        weights = exps / total if total else exps
        v = None if v is None else v.double()
        out = None if v is None else weights @ v
        return cls(
            dots=dots,
            scale=scale,
            scaled=scaled,
            softcap=softcap,
            capped=capped,
            bias=bias,
            allowed=allowed,
            scores=scores,
            largest=largest,
            exps=exps,
            total=total,
            weights=weights,
            v=v,
            out=out,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {field.name: _as_plain(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class CellArithmetic:
    """One query and one key: each term of the weight, and its contribution to the output."""

    batch: int
    head: int
    query: int
    key: int
    q: list[float]
    k: list[float]
    products: list[float]  # q_i · k_i
    dot: float
    scale: float
    scaled: float
    softcap: float | None
    capped: float
    bias: float
    allowed: bool
    score: float
    largest: float  # of the row
    exp: float  # exp(score − largest)
    total: float  # Σ exp over the row
    weight: float
    v: list[float]
    contribution: list[float]  # weight · v
    out: list[float]  # Σ of all contributions of the row

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        terms = " + ".join(f"{a:.4g}·{b:.4g}" for a, b in zip(self.q, self.k, strict=True))
        lines = [
            f"head {self.head}, query {self.query}, key {self.key}",
            f"q · k     = {terms}",
            f"          = {self.dot:.6g}",
            f"· scale   = {self.dot:.6g} · {self.scale:.6g} = {self.scaled:.6g}",
        ]
        if self.softcap is not None:
            inner = f"{self.softcap:.6g} · tanh({self.scaled:.6g} / {self.softcap:.6g})"
            lines.append(f"softcap   = {inner} = {self.capped:.6g}")
        if self.bias:
            lines.append(f"+ bias    = {self.capped:.6g} + {self.bias:.6g} = {self.score:.6g}")
        if not self.allowed:
            lines.append("mask      = hidden: the score becomes −∞")
        lines += [
            f"exp       = exp({self.score:.6g} − {self.largest:.6g}) = {self.exp:.6g}",
            f"weight    = {self.exp:.6g} / {self.total:.6g} = {self.weight:.6g}",
            f"weight · v = {_format_vector(self.contribution)}",
            f"row's out  = {_format_vector(self.out)}",
        ]
        return "\n".join(lines)


def row_arithmetic(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    *,
    query: int,
    head: int = 0,
    batch: int = 0,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> RowArithmetic:
    """Every step of one row of attention, from the operands.

    >>> q, k, v = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 3, 4), torch.ones(1, 1, 3, 2)
    >>> row_arithmetic(q, k, v, query=1).weights
    tensor([0.3333, 0.3333, 0.3333], dtype=torch.float64)
    """
    scoring = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    check_values(q, k, v, 0.0)
    B, H, L, S = scoring.extent
    for name, place, length in (("batch", batch, B), ("head", head, H), ("query", query, L)):
        _check_place(name, place, length)
    kv_head = head // (H // k.shape[1])
    q_row, k_all = q[batch, head, query].double(), k[batch, kv_head].double()
    tile = Tile(scoring.extent, slice(query, query + 1), slice(0, S), q.device)

    def of_row(values: Tensor | None) -> Tensor | None:
        return None if values is None else values.expand(B, H, 1, S)[batch, head, 0]

    row = RowArithmetic.of_dots(
        k_all @ q_row,
        scale=scoring.scale,
        softcap=scoring.softcap,
        bias=of_row(None if scoring.bias is None else scoring.bias.tile(tile)),
        allowed=of_row(None if scoring.mask is None else scoring.mask.tile(tile)),
        v=v[batch, kv_head],
    )
    return RowArithmetic(**{**vars(row), "q": q_row, "k": k_all})


def cell_arithmetic(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    *,
    query: int,
    key: int,
    head: int = 0,
    batch: int = 0,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> CellArithmetic:
    """One cell of attention, operand by operand; printing it shows the arithmetic.

    >>> q = k = v = torch.eye(2).view(1, 1, 2, 2)
    >>> print(cell_arithmetic(q, k, v, query=0, key=0, scale=1.0))
    head 0, query 0, key 0
    q · k     = 1·1 + 0·0
              = 1
    · scale   = 1 · 1 = 1
    exp       = exp(1 − 1) = 1
    weight    = 1 / 1.36788 = 0.731059
    weight · v = [0.7311, 0]
    row's out  = [0.7311, 0.2689]
    """
    row = row_arithmetic(
        q,
        k,
        v,
        query=query,
        head=head,
        batch=batch,
        mask=mask,
        bias=bias,
        scale=scale,
        softcap=softcap,
    )
    _check_place("key", key, len(row.dots))
    assert row.q is not None and row.k is not None and row.v is not None and row.out is not None
    weight = float(row.weights[key])
    return CellArithmetic(
        batch=batch,
        head=head,
        query=query,
        key=key,
        q=row.q.tolist(),
        k=row.k[key].tolist(),
        products=(row.q * row.k[key]).tolist(),
        dot=float(row.dots[key]),
        scale=row.scale,
        scaled=float(row.scaled[key]),
        softcap=row.softcap,
        capped=float(row.capped[key]),
        bias=float(row.bias[key]),
        allowed=bool(row.allowed[key]),
        score=float(row.scores[key]),
        largest=row.largest,
        exp=float(row.exps[key]),
        total=row.total,
        weight=weight,
        v=row.v[key].tolist(),
        contribution=(weight * row.v[key]).tolist(),
        out=row.out.tolist(),
    )


def _check_place(name: str, place: int, length: int) -> None:
    if not 0 <= place < length:
        raise ShapeError(f"{name} must lie in 0 … {length - 1}; got {place}.")


def _as_plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value


def _format_vector(numbers: list[float]) -> str:
    shown = [f"{x:.4g}" for x in numbers[:8]] + (["…"] if len(numbers) > 8 else [])
    return f"[{', '.join(shown)}]"
