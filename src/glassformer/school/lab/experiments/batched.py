"""Many small matrices at once: a batched product against a loop and against one big matrix."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.functional import attention_weights
from glassformer.render.chart import Axis, Chart, Lines, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.measurement import fit_exponent, largest_difference, measure_seconds
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts


class _Size(NamedTuple):
    counts: tuple[int, ...]
    length: int
    repeats: int


_SIZES = {"quick": _Size((4, 16, 64), 8, 5), "full": _Size((4, 8, 16, 32, 64, 96), 12, 5)}
_WIDTH = 16
_WAYS = ("batched", "loop", "big")


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """n products of (L, D) by (D, L), three ways; then heads as one matrix, and broadcasting."""
    del seed
    counts, L, repeats = _SIZES[size]
    apart: dict[str, list[float]] = {"loop": [], "big": []}
    times: dict[str, list[float]] = {way: [] for way in _WAYS}
    numbers: Numbers = {"counts": list(counts), "length": L, "apart": apart, "seconds": times}
    for n, _ in iterate_with_progress(counts, progress, numbers):
        q, k = (torch.randn(n, L, _WIDTH, dtype=torch.float64) for _ in range(2))
        ways: dict[str, Callable[[], Tensor]] = {
            "batched": lambda q=q, k=k: q @ k.transpose(-1, -2)
        }
        ways["loop"] = lambda q=q, k=k: torch.stack([a @ b.T for a, b in zip(q, k, strict=True)])
        left, right = torch.block_diag(*q), torch.block_diag(*(b.T for b in k))
        ways["big"] = lambda left=left, right=right: left @ right
        expected = ways["batched"]()
        apart["loop"].append(largest_difference(ways["loop"](), expected))
        # The products stand on the diagonal of the big one; all else in it is 0.
        apart["big"].append(largest_difference(ways["big"](), torch.block_diag(*expected)))
        for way, seconds in measure_seconds(ways, repeats=repeats, at_least=1e-3).items():
            times[way].append(seconds)
    return {**numbers, "heads": _splitting_error(), "broadcast": _check_broadcasting()}


def _splitting_error() -> float:
    """H projections C → D against a single one C → H · D whose output is split."""
    C, H, L = 48, 3, 5
    small = [torch.randn(C, _WIDTH, dtype=torch.float64) for _ in range(H)]
    x = torch.randn(2, L, C, dtype=torch.float64)
    one = (x @ torch.cat(small, dim=1)).unflatten(-1, (H, _WIDTH)).transpose(1, 2)
    return largest_difference(torch.stack([x @ w for w in small], dim=1), one)


def _check_broadcasting() -> dict[str, bool]:
    """Masks of every smaller shape, against the same mask written out to (B, H, L, S)."""
    B, H, L, S = 2, 3, 5, 7
    q, k = torch.randn(B, H, L, _WIDTH), torch.randn(B, H, S, _WIDTH)
    found = {}
    for shape in ((B, 1, 1, S), (1, 1, L, S), (1, H, L, S), (B, 1, L, S)):
        mask = torch.rand(shape) > 0.3
        mask[..., 0] = True
        small = attention_weights(q, k, mask=mask)
        whole = attention_weights(q, k, mask=mask.expand(B, H, L, S).clone())
        found[str(shape)] = torch.equal(small, whole)
    return found


def judge(numbers: Numbers) -> Verdict:
    apart = max(max(values) for values in numbers["apart"].values())
    quicker = numbers["seconds"]["loop"][-1] / numbers["seconds"]["batched"][-1]
    growth = fit_exponent(numbers["counts"], numbers["seconds"]["big"])
    return Verdict.of(
        # float64 rounds at 2e-16; sums of 16 terms of size 1 stay far below this.
        Check("equal", apart < 1e-12, {"apart": apart}),
        Check("heads", numbers["heads"] < 1e-12, {"apart": numbers["heads"]}),
        Check(
            "broadcast",
            all(numbers["broadcast"].values()),
            {"equal": sum(numbers["broadcast"].values()), "n": len(numbers["broadcast"])},
        ),
        # Each product of the loop costs a call; batched there is one for all.
        Check("quicker", quicker > 1, {"times": quicker, "n": numbers["counts"][-1]}),
        # n blocks on a diagonal are n² blocks, nearly all 0: n³ multiplications. Small matrices
        # hide some of that, so more than n² is asked for, not 3.
        Check("wasteful", growth > 1.5, {"exponent": growth}),
    )


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    return Chart(
        (
            Lines(
                title=texts("time"),
                x=Axis(label=texts("count"), log=True),
                y=Axis(label=texts("microseconds"), log=True),
                places=tuple(numbers["counts"]),
                series=tuple(
                    Series(
                        name=texts(way),
                        values=tuple(
                            1e6 * s / n
                            for s, n in zip(
                                numbers["seconds"][way], numbers["counts"], strict=False
                            )
                        ),
                    )
                    for way in _WAYS
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="batched",
    look_at=(
        "fromscratch/multi_head_parameters.py:MultiHeadParameters",
        "fromscratch/multi_head_einsum.py:MultiHeadEinsum",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
