"""What a kernel did with its operands: other settings, tried until one gives its output.

The output of attention and what its recorded operands give in float64 should be the same. Where
they are not, the operands are computed once more with another scale, mask, cap or grouping of
heads; the one that gives the kernel's output, if any, is what the kernel did.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.analysis.bisection.kinds import EXPLAINED, Kind
from glassformer.analysis.bisection.scoring import added_bias
from glassformer.analysis.bisection.stages import Stage

_MOST_CELLS = 1 << 22  # computed for each hypothesis
_MOST_ROWS = 64


@dataclass(eq=False, frozen=True, kw_only=True)
class _Rows:
    """Some rows of a site with everything that their output depends on."""

    q: Float[Tensor, "H R D"]
    k: Float[Tensor, "K S D"]
    v: Float[Tensor, "K S E"]
    scale: float
    softcap: float | None
    bias: Float[Tensor, "H R S"]
    allowed: Bool[Tensor, "H R S"]

    def attend(self, **other: Any) -> Float[Tensor, "H R E"]:
        """The output, with some of the settings replaced."""
        H, K = len(self.q), len(self.k)
        group = other.get("group", [h * K // H for h in range(H)])
        scale, softcap = other.get("scale", self.scale), other.get("softcap", self.softcap)
        allowed = other.get("allowed", self.allowed)
        scores = self.q @ self.k[group].transpose(1, 2) * scale
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        scores = (scores + other.get("bias", self.bias)).masked_fill(~allowed, -torch.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)  # rows without a key
        return weights @ self.v[group]


def find_kernel_kind(stage: Stage) -> Kind | None:
    """Which settings give the output of a stage of operand "out", if any of those known do."""
    assert stage.pair is not None and stage.a is not None and stage.b is not None
    pair = stage.pair
    site = pair.first if stage.is_first else pair.second
    S = site.k.shape[2]
    n = max(1, min(_MOST_ROWS, _MOST_CELLS // max(1, site.n_heads * S)))
    worst = stage.apart.vectors.amax(0).argsort(descending=True)[:n].sort().values.tolist()
    at = [pair.rows[1 if stage.is_first else 2][i] for i in worst]
    q, k, v = (t[pair.sequence].double().cpu() for t in (site.q, site.k, site.v))
    rows = _Rows(
        q=q[:, at],
        k=k,
        v=v,
        scale=pair.scales()[0 if stage.is_first else 1],
        softcap=site.softcap,
        bias=added_bias(site, at, S, pair.sequence),
        allowed=site.allowed(rows=at, sequence=pair.sequence).cpu(),
    )
    positions = site.query_positions.cpu()[at]
    out, exact = stage.b[:, worst], stage.a[:, worst]
    whole = float((out - exact).norm().clamp(min=1e-300))
    seen = ~(stage.b[:, worst] == 0).all(-1, keepdim=True) | rows.allowed.any(-1, keepdim=True)

    def left(other: dict[str, Any]) -> float:
        return float(((out - rows.attend(**other)) * seen).norm()) / whole

    tried = [(left(other), kind) for kind, other in _settings(rows, positions)]
    tried.append(_search_scale(rows, left))
    share, kind = min(tried, key=lambda each: each[0])
    if share > EXPLAINED:
        return None
    return Kind(name=kind.name, values=kind.values, left=share)


def _settings(rows: _Rows, positions: Tensor) -> Iterator[tuple[Kind, dict[str, Any]]]:
    H, K, S = len(rows.q), len(rows.k), rows.k.shape[1]
    if rows.softcap is not None:
        yield Kind(name="kernel softcap", values={"first": rows.softcap}), {"softcap": None}
    if rows.bias.any():
        yield Kind(name="kernel bias"), {"bias": torch.zeros_like(rows.bias)}
    if 1 < K < H:
        yield Kind(name="kernel groups"), {"group": [h % K for h in range(H)]}
    if not rows.allowed.all():
        yield (
            Kind(name="kernel mask", values={"by": None}),
            {"allowed": torch.ones_like(rows.allowed)},
        )
    keys = torch.arange(S)
    for by in (1, -1):
        moved = _move_right(rows.allowed, by)
        if not torch.equal(moved, rows.allowed):
            yield Kind(name="kernel mask", values={"by": by}), {"allowed": moved}
        moved = _move_left(rows.allowed, by)
        if not torch.equal(moved, rows.allowed):
            yield Kind(name="kernel window", values={"by": by}), {"allowed": moved}
    first = (keys <= positions[:, None] - (int(positions.max()) + 1 - len(positions))).expand_as(
        rows.allowed
    )
    if not torch.equal(first, rows.allowed) and len(positions) < S:
        yield Kind(name="kernel mask", values={"by": "corner"}), {"allowed": first}


def _move_right(allowed: Bool[Tensor, "H R S"], by: int) -> Bool[Tensor, "H R S"]:
    """The last open key of each row, `by` keys later."""
    later = torch.roll(allowed, by, dims=-1)
    if by > 0:
        later[..., :by] = allowed[..., :by]
        return allowed | later
    later[..., by:] = False
    return allowed & later


def _move_left(allowed: Bool[Tensor, "H R S"], by: int) -> Bool[Tensor, "H R S"]:
    """The first open key of each row, `by` keys earlier, where it is not the first of all."""
    return _move_right(allowed.flip(-1), by).flip(-1) | (allowed & allowed[..., :1])


def _search_scale(rows: _Rows, left: Callable[[dict[str, Any]], float]) -> tuple[float, Kind]:
    """The scale that comes closest: a grid of factors, then halving around the best."""
    factors = [2.0 ** (i / 4) for i in range(-20, 21)]
    best = min(factors, key=lambda f: left({"scale": rows.scale * f}))
    step = 2.0**0.25
    for _ in range(30):
        near = (best / step, best, best * step)
        best = min(near, key=lambda f: left({"scale": rows.scale * f}))
        step = step**0.5
    scale = rows.scale * best
    values = {"first": rows.scale, "second": scale}
    return left({"scale": scale}), Kind(name="kernel scale", values=values)
