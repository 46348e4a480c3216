"""Which logits a batch needs: those of the tokens that some prompt may have.

Where these are few (a shortlist, the tokens of one language), a CPU does not multiply by the rows
of the output matrix for all others. On a GPU that would gain nothing.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.functional.quantized import QuantizedWeight
from glassformer.models.decoder_weights import Linear

_LEAST = 16  # tokens: the C code multiplies by vectors of rows
_MOST = 0.5  # share of the vocabulary: with more, copying the rows gains too little


def select_outputs(
    never: Sequence[int], forbidden: Bool[Tensor, "B V"] | None
) -> Int[Tensor, " n"] | None:
    """The tokens that some prompt may have, in ascending order; None where most may be had.

    >>> forbidden = torch.ones(2, 50, dtype=torch.bool)
    >>> forbidden[0, 10:20] = forbidden[1, 15:30] = False
    >>> select_outputs([12], forbidden)
    tensor([10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
            29])
    """
    if forbidden is None or not forbidden.is_cpu:
        return None
    is_needed = ~forbidden.all(dim=0)
    is_needed[list(never)] = False
    tokens = is_needed.nonzero()[:, 0]
    return tokens if _LEAST <= len(tokens) <= _MOST * len(is_needed) else None


def select_rows(linear: Linear, rows: Int[Tensor, " n"]) -> Linear:
    """Some of the outputs of a matrix."""
    weight, bias = linear.weight, linear.bias
    if isinstance(weight, QuantizedWeight):
        numbers, scale = (each.index_select(0, rows) for each in (weight.numbers, weight.scale))
        weight = QuantizedWeight(numbers, scale, weight.dtype)
    else:
        weight = weight.index_select(0, rows)
    return Linear(weight, None if bias is None else bias.index_select(0, rows))


def spread_logits(
    logits: Float[Tensor, "B n"], tokens: Int[Tensor, " n"], vocab_size: int
) -> Float[Tensor, "B V"]:
    """The logits of these tokens in their places, and −∞ for all others.

    >>> spread_logits(torch.tensor([[0.5, 2.0]]), torch.tensor([1, 2]), 4)
    tensor([[  -inf, 0.5000, 2.0000,   -inf]])
    """
    spread = logits.new_full((len(logits), vocab_size), -torch.inf)
    spread[:, tokens] = logits
    return spread
