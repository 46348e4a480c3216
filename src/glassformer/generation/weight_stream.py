"""The order in which a decoding step on a GPU reads its matrices, and what it prefetches of them.

One row of activations needs every weight once, so a step is a stream of matrices:

    … │ qkv │ out │        up         │   down   │ qkv │ …
                    ▲ a program reads here, and asks for what lies AHEAD bytes further ▲

Kernels wait for each other, the memory need not: while one ends and the next begins, or attention
runs, it brings what the next programs read into the L2 cache.
"""

from typing import NamedTuple

from torch import Tensor

from glassformer.models.decoder_weights import DecoderWeights

AHEAD = 16 << 20  # bytes; an H200 has 50 MB of L2 cache. 0 prefetches nothing
_ALIGNMENT = 16  # bytes: of what is prefetched at once


class Matrix(NamedTuple):
    """A matrix (out, in), or with `gated` two of them, one below the other."""

    weight: Tensor
    gated: bool = False


class Prefetch(NamedTuple):
    """What the programs of a product prefetch (product_kernels.py), in programs and elements.

    All but the last `distance` programs ask for what the program `distance` later reads. The others
    share the first `length` elements of the next matrix, or of two that lie `gap` apart.
    """

    following: Tensor
    distance: int
    share: int
    length: int
    gap: int


class WeightStream:
    """The matrices of a model in the order in which a step reads them, again and again."""

    def __init__(self, weights: DecoderWeights) -> None:
        matrices: list[Matrix] = []
        for attention, cross, feed_forward in weights.stack.layers:
            matrices += [Matrix(attention.qkv.weight), Matrix(attention.out.weight)]
            if cross is not None:
                matrices += [Matrix(cross.q.weight), Matrix(cross.out.weight)]
            matrices.append(Matrix(feed_forward.up.weight, weights.config.gated))
            matrices.append(Matrix(feed_forward.down.weight))
        matrices.append(Matrix(weights.head.weight))
        following = [*matrices[1:], matrices[0]]
        self._following = {
            here.weight.data_ptr(): after for here, after in zip(matrices, following, strict=True)
        }

    def plan(self, here: Matrix, columns: int, n_programs: int) -> Prefetch | None:
        """What the programs of a product prefetch; None if that is nothing."""
        after = self._following[here.weight.data_ptr()]
        is_aligned = _is_aligned(here.weight) and _is_aligned(after.weight)
        if AHEAD == 0 or not is_aligned:
            return None
        return plan_prefetch(here, after, columns=columns, n_programs=n_programs, ahead=AHEAD)


def _is_aligned(weight: Tensor) -> bool:
    row = weight.shape[1] * weight.element_size()
    return weight.data_ptr() % _ALIGNMENT == 0 and row % _ALIGNMENT == 0


def plan_prefetch(
    here: Matrix, after: Matrix, *, columns: int, n_programs: int, ahead: int
) -> Prefetch:
    """Prefetch `ahead` bytes before they are read by programs of `columns` rows of a matrix each.

    >>> import torch
    >>> here, after = Matrix(torch.zeros(32, 64)), Matrix(torch.zeros(128, 64), gated=True)
    >>> plan_prefetch(here, after, columns=2, n_programs=16, ahead=1 << 12)[1:]
    (8, 64, 512, 4096)
    """
    size = here.weight.element_size()
    step = _ALIGNMENT // size
    of_program = columns * here.weight.shape[1] * (2 if here.gated else 1)
    distance = max(1, ahead // (of_program * size))
    halves = 2 if after.gated else 1
    length = min(ahead // size, after.weight.numel()) // (halves * step) * step
    share = -(-length // (min(n_programs, distance) * step)) * step
    gap = after.weight.numel() // 2 if after.gated else 0
    return Prefetch(after.weight, distance, share, length, gap)
