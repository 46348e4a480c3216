"""What is compared: each tool gives the same quantities in the same layout.

N layers, B sequences, L positions, H heads, C features, V tokens.
"""

from torch import Tensor

Quantities = dict[str, Tensor]
LOGITS = "logits"  # B L V
LENS = "logit lens at block borders"  # N + 1, B L V
LENS_BETWEEN = "logit lens between attention and MLP"  # N B L V
PATTERNS = "attention patterns"  # N B H L L
HEADS = "outputs of heads"  # N B L H C
HEADS_BEFORE = "outputs of heads, before a norm on their way"
PART_SHARES = "attribution to parts"  # rows, 1 + 2 N: the start, attention and MLP of each layer
HEAD_SHARES = "attribution to heads"  # rows, N, H
HEAD_DIFFERENCES = "attribution to heads, of a logit difference"
REMAINDER = "what all shares miss the logit by"  # rows; compared with 0, not with each other
INDUCTION = "induction scores, the stripe"  # N H
DETECTOR = "induction scores, `head_detector`"  # N H


def score_stripe(patterns: Tensor) -> Tensor:
    """The mean weight, in the second half, on the token after the earlier copy; (N, H)."""
    n = patterns.shape[-1] // 2
    stripe = patterns.diagonal(1 - n, -2, -1)  # query i, key i + 1 − n
    return stripe[..., -n:].mean(-1).mean(1)
