"""The numbers of the demo: two examples small enough for paper, computed by the library."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.cli.json_text import finite_or_null
from glassformer.functional import Causal, RowArithmetic

SENTENCE = ("The", "cat", "sat")
QUERY = "cat"
THREE_WORDS = ("我", "爱", "你")


def cat_row() -> RowArithmetic:
    """*cat* against *The, cat, sat*, for heads of width 64.

    >>> cat_row().weights
    tensor([0.0638, 0.6282, 0.3081], dtype=torch.float64)
    """
    dots = torch.tensor([12.5, 30.8, 25.1], dtype=torch.float64)
    # Chosen to be read: the first number says "a thing", the second "an action".
    v = torch.tensor([[0.1, 0.0], [1.0, 0.2], [0.2, 1.0]], dtype=torch.float64)
    return RowArithmetic.of_dots(dots, scale=64**-0.5, v=v)


@dataclass(frozen=True, eq=False)
class ThreeWords:
    """Every word against every word, where no word may look ahead."""

    scores: Float[Tensor, "L S"]
    mask: Bool[Tensor, "L S"]
    masked: Float[Tensor, "L S"]  # −∞ where hidden
    weights: Float[Tensor, "L S"]


def three_words() -> ThreeWords:
    """我 爱 你 under a causal mask.

    >>> three_words().masked[0]
    tensor([10., -inf, -inf], dtype=torch.float64)
    """
    scores = torch.tensor([[10, 8, 5], [9, 12, 11], [4, 7, 9]], dtype=torch.float64)
    mask = Causal().dense(len(scores))[0, 0]
    pairs = zip(scores, mask, strict=True)
    rows = [RowArithmetic.of_dots(row, allowed=allowed) for row, allowed in pairs]
    masked = torch.stack([row.scores for row in rows])
    weights = torch.stack([row.weights for row in rows])
    return ThreeWords(scores, mask, masked, weights)


def as_dict() -> dict[str, Any]:
    """Both examples as plain numbers; −∞, which JSON lacks, is None."""
    words = three_words()
    five = {name: value for name, value in cat_row().as_dict().items() if value is not None}
    return {
        "five_steps": {"query": QUERY, "tokens": list(SENTENCE), **five},
        "causal": {
            "tokens": list(THREE_WORDS),
            "scores": words.scores.tolist(),
            "mask": words.mask.tolist(),
            "masked": finite_or_null(words.masked.tolist()),
            "weights": words.weights.tolist(),
        },
    }
