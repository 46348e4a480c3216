"""How far two tensors are apart, and how far rounding alone may set them apart."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# Of the size of a vector. Kernels differ in the order of their sums (float32), or round their
# results once or twice (half precision); what grows from such differences is allowed for by GROWTH.
TOLERANCES = {
    torch.float64: 2.0**-40,
    torch.float32: 2.0**-16,
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
}
GROWTH = 8.0  # an operand may be so many times further apart than what it was computed from


class Apart(NamedTuple):
    """The distance of two operands, relative to the size of the first."""

    whole: float  # ‖b − a‖ / ‖a‖
    worst: float  # the same for the worst of its vectors; small ones count as of usual size
    vectors: Float[Tensor, "H R"]


def measure(a: Float[Tensor, "H R D"], b: Float[Tensor, "H R D"]) -> Apart:
    """How far b is from a, as a whole and vector by vector."""
    same = (a == b) | (a.isnan() & b.isnan())
    delta = (b - a).masked_fill(same, 0.0).norm(dim=-1)
    sizes = a.nan_to_num(0.0, 0.0, 0.0).norm(dim=-1)
    usual = sizes.square().mean().sqrt() if sizes.numel() else sizes.new_zeros(())
    vectors = delta / sizes.maximum(usual).clamp(min=1e-30)
    vectors = vectors.nan_to_num(torch.inf, torch.inf)
    whole = delta.norm() / sizes.norm().clamp(min=1e-30)
    whole = float(whole.nan_to_num(torch.inf, torch.inf))
    return Apart(whole, float(vectors.max()) if vectors.numel() else 0.0, vectors)


def tolerance(*dtypes: torch.dtype) -> float:
    """What rounding alone may do between operands that were computed from the same numbers."""
    return max(TOLERANCES.get(dtype, TOLERANCES[torch.float32]) for dtype in dtypes)


def differing(apart: Apart, threshold: float) -> tuple[list[int], list[int]]:
    """The heads and the rows in which vectors are further apart than this."""
    far: Bool[Tensor, "H R"] = apart.vectors > threshold
    return far.any(1).nonzero().flatten().tolist(), far.any(0).nonzero().flatten().tolist()
