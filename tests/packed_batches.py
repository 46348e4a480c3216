"""Packed batches for tests, and their statistics from each sequence's whole matrix, in float64."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

import glassformer as gf
from closeness import assert_close, assert_same

Rule = Callable[[Tensor, Tensor], Tensor]  # (position of the query, key) → may attend

MASKS: dict[str, tuple[gf.Mask | None, Rule]] = {
    "none": (None, lambda p, j: j >= 0 * p),
    "causal": (gf.Causal(), lambda p, j: j <= p),
    "window": (gf.Causal() & gf.Window(left=3), lambda p, j: (j <= p) & (j >= p - 3)),
    "prefix": (gf.Prefix(40) & gf.Causal(), lambda p, j: (j < 40) & (j <= p)),
    "hidden": (~gf.Prefix(2), lambda p, j: j >= 2 + 0 * p),
}
WITHIN: tuple[tuple[gf.Mask, Rule], ...] = (
    (gf.Prefix(2), lambda p, j: j < 2 + 0 * p),
    (gf.Window(left=4), lambda p, j: j >= p - 4),
    (gf.Prefix(1) | gf.Window(left=2), lambda p, j: (j < 1) | (j >= p - 2)),
)


class Batch(NamedTuple):
    """q and k of some sequences in one row, or k in the blocks of a cache."""

    q: Tensor
    k: Tensor
    packed: gf.Packed
    sequences: list[tuple[Tensor, Tensor]]


def make_batch(
    lengths: list[tuple[int, int]],
    *,
    heads: tuple[int, int] = (4, 2),
    width: int = 5,
    block: int | None = None,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Batch:
    """Random sequences of these numbers of queries and keys, with blocks in random order."""
    H, K = heads
    sequences = [
        tuple(torch.randn(1, h, n, width).to(device, dtype) for h, n in ((H, L), (K, S)))
        for L, S in lengths
    ]
    q = torch.cat([q for q, _ in sequences], dim=2)
    starts = [torch.tensor([0, *n]).cumsum(0).to(device) for n in zip(*lengths, strict=True)]
    if block is None:
        k = torch.cat([k for _, k in sequences], dim=2)
        return Batch(q, k, gf.Packed(*starts), sequences)
    counts = [-(-S // block) for _, S in lengths]
    order = (torch.randperm(sum(counts) + 2)).tolist()  # two blocks belong to nobody
    table = torch.full((len(lengths), max(*counts, 1)), -7, dtype=torch.int32)
    cache = torch.full((len(order), block, K, width), torch.nan)  # as engines lay it out
    for i, ((_, k), n) in enumerate(zip(sequences, counts, strict=True)):
        rows = torch.nn.functional.pad(k[0].cpu().float(), (0, 0, 0, n * block - k.shape[2]))
        for page in range(n):
            table[i, page] = order.pop()
            part = rows[:, page * block : (page + 1) * block]
            cache[table[i, page]] = part.transpose(0, 1)
    k = cache.to(device, dtype).transpose(1, 2)
    return Batch(q, k, gf.Packed(*starts, table.to(device)), sequences)


def dense_statistics(
    batch: Batch,
    rule: Rule,
    *,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    slopes: Tensor | None = None,
    observe: int = 1,
    top: int = 1,
) -> dict[str, Any]:
    """Every statistic as its definition says, sequence by sequence."""
    parts = []
    for own_q, own_k in batch.sequences:
        q, k = own_q.double(), own_k.double()
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        L, S = q.shape[2], k.shape[2]
        p = torch.arange(S - L, S, device=q.device)[:, None]
        j = torch.arange(S, device=q.device)[None, :]
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if slopes is not None:
            scores = scores - slopes.double()[:, None, None] * (p - j).abs()
        scores = scores.masked_fill(~rule(p, j), -torch.inf)
        least = torch.full((1, q.shape[1], L, 1), -torch.inf, dtype=scores.dtype, device=q.device)
        sink = least if sinks is None else least.new_zeros(()) + sinks.double().view(1, -1, 1, 1)
        every = torch.cat([scores, sink.expand_as(least)], dim=-1)
        lse = every.logsumexp(-1)
        every = (every - lse.masked_fill(lse.isneginf(), 0.0)[..., None]).exp()
        weights = every[..., :-1]
        parts.append(
            {
                "lse": lse,
                "entropy": torch.special.entr(every).sum(-1),
                "peak": torch.cat([weights, least.exp()], -1).amax(-1),
                "distance": (weights * (p - j).abs()).sum(-1),
                "received": weights.sum(2),
                "observed": weights[:, :, max(L - observe, 0) :].sum(2),
                "sink": every[..., -1],
                "largest": torch.cat([scores, least], -1).amax(-1),
                "within": torch.stack([(weights * r(p, j)).sum(-1) for _, r in WITHIN]),
                "top": torch.nn.functional.pad(weights, (0, top)).topk(top, dim=-1).values,
            }
        )
    dims = {"within": -1, "top": 2}
    joined = {n: torch.cat([part[n] for part in parts], dims.get(n, 2)) for n in parts[0]}
    joined["largest"] = torch.nn.functional.pad(joined["largest"], (1, 0), value=-torch.inf).amax(
        -1
    )
    return joined


def assert_like_dense(got: Any, expected: dict[str, Tensor], atol: float = 1e-5) -> None:
    """Every statistic that was asked for, relative where values exceed 1."""
    names = ("entropy", "peak", "distance", "received", "observed", "sink")
    found = {name: getattr(got, name) for name in names}
    found["within"] = torch.stack(got.within) if got.within else None
    for name, value in found.items():
        if value is not None:
            wanted = expected[name]
            unit = max(1.0, wanted.abs().max().item()) if wanted.numel() else 1.0
            assert_close(value.double() / unit, wanted / unit, atol, name)
    for name in ("lse", "largest"):
        value, wanted = getattr(got, name).double(), expected[name]
        assert_same(value.isneginf(), wanted.isneginf())
        assert_close(value.clamp(min=-1e3), wanted.clamp(min=-1e3), atol, name)
    if got.top is not None:
        n = got.top.weights.shape[-1]
        assert_close(got.top.weights.double(), expected["top"][..., :n], atol, "top")
        assert_same(got.top.indices == -1, got.top.weights == 0)
