"""What is left of a mask once its lengths are known: parts that allow everything fall away."""

from glassformer.functional.cells import Bounds, Extent, Whole
from glassformer.functional.graph_capture import sure
from glassformer.functional.masks.mask import And, Mask


def simplify(mask: Mask | None, extent: Extent) -> Mask | None:
    """The mask without the parts that change nothing at this size; None if nothing is hidden.

    Only masks without tensors are judged: reading a tensor would make a GPU wait.

    >>> from glassformer.functional.masks import Causal, Window
    >>> simplify(Causal() & Window(left=99), Extent(1, 1, 8, 8))
    Causal()
    """
    if mask is None:
        return None
    if mask.is_static and extent.L and extent.S:
        bounds: Bounds = mask.bounds(Whole.of(extent))
        if sure(bounds.certain):  # type: ignore[arg-type]  # plain numbers here
            return None
    if isinstance(mask, And):
        a, b = simplify(mask.a, extent), simplify(mask.b, extent)
        if a is None or b is None:
            return a if b is None else b
        return And(a, b)
    return mask
