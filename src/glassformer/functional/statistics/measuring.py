"""The statistics of one batch by the first kernel that does not refuse it, else tile by tile."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.checks import Scoring
from glassformer.functional.statistics import cpu, cuda, streaming


def measure(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    scoring: Scoring,
    *,
    sinks: Float[Tensor, " H"] | None,
    lse: Float[Tensor, "B H L"] | None,
    distance: bool,
    progress: Callable[[float], None] | None,
    **asked: Any,
) -> dict[str, Any]:
    """The fields of `AttentionStatistics`."""
    if sinks is not None and lse is None:
        lse = add_sinks(row_lse(q, k, scoring), sinks)
    kernels = (kernel for kernel in (cuda, cpu) if kernel.refusal(q, scoring, **asked) is None)
    kernel = next(kernels, streaming)
    found = kernel.measure(q, k, scoring, **asked, distance=distance, lse=lse, progress=progress)
    return found if sinks is None else found | share_of_sinks(found, sinks)


def row_lse(
    q: Float[Tensor, "B H L D"], k: Float[Tensor, "B K S D"], scoring: Scoring
) -> Float[Tensor, "B H L"]:
    """The log-sum-exp of every row of scores; −∞ where nothing is allowed."""
    fused = cuda.refusal(q, scoring) is None
    return (cuda if fused else streaming).row_lse(q, k, scoring)


def add_sinks(lse: Float[Tensor, "B H L"], sinks: Float[Tensor, " H"]) -> Float[Tensor, "B H L"]:
    """The log-sum-exp with one more score in each row, that of its head's sink."""
    return torch.logaddexp(lse, sinks.to(lse.dtype)[:, None])


def share_of_sinks(found: dict[str, Any], sinks: Float[Tensor, " H"]) -> dict[str, Tensor]:
    """The weight of the sink in each row, and the entropy with it."""
    weight = (sinks.to(found["lse"].dtype)[:, None] - found["lse"]).exp()
    return {"sink": weight, "entropy": found["entropy"] + torch.special.entr(weight)}
