"""Simplify a mask for known lengths: parts that allow everything are dropped."""

from glassformer.functional.cells import Bounds, Extent, Whole
from glassformer.functional.graph_capture import is_known_true
from glassformer.functional.masks.mask import And, Mask


def simplify(mask: Mask | None, extent: Extent) -> Mask | None:
    """The mask without the parts that change nothing at this size; None if nothing is hidden.

    Only masks without tensors are examined: reading a tensor would synchronize with the GPU.

    >>> from glassformer.functional.masks import Causal, Window
    >>> simplify(Causal() & Window(left=99), Extent(1, 1, 8, 8))
    Causal()
    """
    if mask is None:
        return None
    if mask.is_static and extent.L and extent.S:
        bounds: Bounds = mask.bounds(Whole.of(extent))
        if is_known_true(bounds.certain):  # type: ignore[arg-type]  # plain numbers here
            return None
    if isinstance(mask, And):
        a, b = simplify(mask.a, extent), simplify(mask.b, extent)
        if a is None or b is None:
            return a if b is None else b
        return And(a, b)
    return mask
