"""What kind of difference lies between two operands: hypotheses, each tested on the numbers.

A kind is named only if it explains the difference: what is left of b − a after it is a small
share. They are tried from the simplest, with the fewest free numbers, to the one with the most.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.bisection.rotations import find_rotation, find_turned_constant
from glassformer.analysis.bisection.stages import Stage

EXPLAINED = 0.05  # the share of a difference that a kind may leave
_FEW = 3  # rows that a law over positions must hold for, at least
# bfloat16 first: its numbers are short enough for float16, but not the reverse.
_ROUNDED = ((torch.bfloat16, "bfloat16"), (torch.float16, "float16"))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A hypothesis that holds, with its numbers."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    left: float = 0.0  # the share of the difference that it does not explain


def find_kind(stage: Stage) -> Kind | None:
    """The simplest kind of difference that explains a stage; None: no simple one does."""
    if stage.found:
        return Kind(name=stage.operand, values=dict(stage.found))
    assert stage.a is not None and stage.b is not None
    if not (stage.a.isfinite().all() and stage.b.isfinite().all()):
        return Kind(name="infinite", values={"rows": stage.differing()[1]})
    for test in _TESTS:
        found = test(stage, stage.a, stage.b)
        if found is not None:
            return found
    return None


def _left(a: Tensor, b: Tensor, predicted: Tensor) -> float:
    """The share of b − a that a prediction of b leaves."""
    return float((b - predicted).norm() / (b - a).norm().clamp(min=1e-300))


def _changed_heads(stage: Stage) -> list[int]:
    """Indices, not numbers."""
    far = stage.apart.vectors > stage.threshold
    return far.any(1).nonzero().flatten().tolist()


def find_zeros(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    for name, x in (("zeroed", b), ("zeroed first", a)):
        heads = _changed_heads(stage)
        if heads and not x[heads].any():
            return Kind(name=name, values={"heads": stage.differing()[0], "of": len(a)})
    return None


def find_rounding(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """Numbers that a narrower type can write, where the other trace has numbers that it cannot."""
    for narrow, name in _ROUNDED:
        for side, x, other in (("second", b, a), ("first", a, b)):
            heads = _changed_heads(stage)
            fits = (x[heads].to(narrow).double() == x[heads]).all()
            if fits and (other[heads].to(narrow).double() != other[heads]).float().mean() > 0.5:
                half = torch.finfo(narrow).eps / 2
                if stage.apart.whole < 16 * half:
                    return Kind(name="rounded", values={"dtype": name, "side": side})
    return None


def find_permutation(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """Heads of a that stand in other places in b."""
    places = {}
    for h in _changed_heads(stage):
        apart = [float((b[h] - a[j]).norm()) for j in range(len(a))]
        j = min(range(len(a)), key=apart.__getitem__)
        if j == h or apart[j] > EXPLAINED * float((b[h] - a[h]).norm()):
            return None
        places[h] = j
    return Kind(name="permuted", values={"heads": places}) if len(places) > 1 else None


def find_factor(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """b is a times a number, in the heads that differ."""
    heads = _changed_heads(stage)
    x, y = a[heads], b[heads]
    factor = float((x * y).sum() / x.square().sum().clamp(min=1e-300))
    left = _left(x, y, factor * x)
    return Kind(name="scaled", values={"factor": factor}, left=left) if left < EXPLAINED else None


def find_constant(_stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """The same vector is added everywhere: a bias that one of the two lacks."""
    if a.shape[1] < _FEW:
        return None
    added = (b - a).mean(1, keepdim=True)
    left = _left(a, b, a + added)
    if left > EXPLAINED:
        return None
    size = float(added.norm() / a.mean(1).norm().clamp(min=1e-300))
    return Kind(name="constant", values={"size": size}, left=left)


def find_shift(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """b has at each position what a has at another."""
    for by in (1, -1, 2, -2):
        if a.shape[1] < abs(by) + _FEW or stage.positions != list(range(a.shape[1])):
            continue
        ours, theirs = (a[:, by:], b[:, :-by]) if by > 0 else (a[:, :by], b[:, -by:])
        own = a[:, :-by] if by > 0 else a[:, -by:]
        left = _left(own, theirs, ours)
        if left < EXPLAINED:
            return Kind(name="shifted", values={"by": by}, left=left)
    return None


def find_turn(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """Pairs of coordinates are rotated: positions, or the frequencies of a rotary embedding."""
    if stage.operand not in ("q", "k"):
        return None
    found = find_rotation(a, b, stage.positions, EXPLAINED)
    return None if found is None else Kind(name="rotated", values=found[0], left=found[1])


def find_row_factors(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """A factor for each position, the same for all heads: what a norm divides by."""
    if a.shape[0] * a.shape[2] < 2:
        return None
    factors = (a * b).sum((0, 2)) / a.square().sum((0, 2)).clamp(min=1e-300)
    left = _left(a, b, a * factors[None, :, None])
    if left > EXPLAINED or len(factors) < _FEW:
        return None
    low, high = float(factors.min()), float(factors.max())
    values: dict[str, Any] = {"low": low, "high": high}
    if stage.reads is not None:
        difference = _find_epsilon(factors, stage.reads)
        values |= {} if difference is None else {"epsilon": difference}
    return Kind(name="rescaled", values=values, left=left)


def _find_epsilon(factors: Float[Tensor, " R"], x: Float[Tensor, "R C"]) -> float | None:
    """How much greater ε of the second norm is, where that explains the factors.

    factor² · (size + ε_b) = size + ε_a; both are solved for, but only their difference is certain:
    for the smaller one, a size of 1 hides 10⁻⁶.
    """
    square = factors.square()
    for centred in (False, True):
        x = x - x.mean(-1, keepdim=True) if centred else x
        sizes = x.square().mean(-1)
        target = ((square - 1) * sizes)[:, None]  # = ε_a − factor² ε_b
        matrix = torch.stack([torch.ones_like(square), -square], dim=1)
        solved = torch.linalg.lstsq(matrix, target).solution
        apart = float((matrix @ solved - target).norm() / target.norm().clamp(min=1e-300))
        first, second = solved.flatten().tolist()
        if apart < EXPLAINED and min(first, second) > -EXPLAINED * abs(second - first):
            return second - first
    return None


def find_turned_bias(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """The same vector was added before the rotation by positions."""
    if stage.operand not in ("q", "k"):
        return None
    left = find_turned_constant(a, b, stage.positions)
    if left is None or left > EXPLAINED:
        return None
    return Kind(name="constant", values={"before": "rotation"}, left=left)


def find_coordinates(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """Only a few coordinates of a few heads differ: a row of a matrix, or one of its numbers."""
    energy = (b - a).square().sum(1)  # (H, D)
    n = energy.numel()
    order = energy.flatten().argsort(descending=True)
    most = max(2, n // 32)
    share = energy.flatten()[order].cumsum(0) / energy.sum().clamp(min=1e-300)
    count = int((share < 1 - EXPLAINED**2).sum()) + 1
    if count > most:
        return None
    places = sorted((int(i) // energy.shape[1], int(i) % energy.shape[1]) for i in order[:count])
    values: dict[str, Any] = {"places": places, "of": len(a)}
    feature = _find_feature(stage, (b - a)[[p[0] for p in places], :, [p[1] for p in places]])
    if feature is not None:
        values["feature"] = feature
    return Kind(name="coordinates", values=values)


def _find_feature(stage: Stage, delta: Float[Tensor, "N R"]) -> int | None:
    """The feature of the normed input that a difference follows: one changed weight reads it."""
    if stage.reads is None or delta.shape[1] < 8:
        return None
    size = delta.norm(dim=0)  # a rotation by positions keeps it
    for x in normed(stage.reads):
        sizes = x.abs()
        match = (sizes * size[:, None]).sum(0) / (sizes.norm(dim=0) * size.norm()).clamp(min=1e-300)
        best, runner_up = match.topk(2).values.tolist()
        if best > 1 - EXPLAINED**2 and runner_up < 1 - 2 * EXPLAINED**2:
            return int(match.argmax())
    return None


def normed(x: Float[Tensor, "R C"]) -> Iterator[Float[Tensor, "R C"]]:
    """What a matrix may read of a state: the state, or its norm without gain."""
    yield x
    yield x / x.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-300)
    centred = x - x.mean(-1, keepdim=True)
    yield centred / centred.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-300)


def find_transposition(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """x Wᵀ and x W of one W: then x_i · a_j = b_i · x_j for all positions i and j."""
    x = stage.reads
    a, b = (t.transpose(0, 1).flatten(1) for t in (a, b))  # (R, H D)
    if x is None or x.shape != a.shape:
        return None
    for read in normed(x):
        left = float((read @ a.T - b @ read.T).norm() / ((b - a) @ read.T).norm())
        if left < EXPLAINED:
            return Kind(name="transposed", left=left)
    return None


def find_even_noise(stage: Stage, a: Tensor, b: Tensor) -> Kind | None:
    """Small, in every head and at every position alike: what rounded weights do.

    Weights rounded to n bits, with one step for each row, are off by about their largest / 2ⁿ⁻¹ /
    √12; the largest of a row of a few hundred is about three times the usual.
    """
    if not 0 < stage.apart.whole < 0.3 or a.shape[1] < _FEW:
        return None
    delta, size = (b - a).square(), a.square()
    for dims in ((1, 2), (0, 2)):
        share = (delta.sum(dims) / size.sum(dims).clamp(min=1e-300)).sqrt()
        if float(share.max()) > 3 * stage.apart.whole or float(share.min()) < stage.apart.whole / 3:
            return None
    bits = 1 + torch.log2(torch.tensor(3 / 12**0.5 / stage.apart.whole))
    return Kind(name="even", values={"bits": round(float(bits))})


_Test = Callable[[Stage, Tensor, Tensor], Kind | None]
_TESTS: tuple[_Test, ...] = (
    find_zeros,
    find_rounding,
    find_permutation,
    find_factor,
    find_constant,
    find_shift,
    find_turn,
    find_turned_bias,
    find_row_factors,
    find_coordinates,
    find_transposition,
    find_even_noise,
)
