"""What is compared: each tool gives the same quantities in the same layout.

N layers, B sequences, L positions, H heads, C features, V tokens.
"""

from typing import Protocol

import torch
from torch import Tensor

from why_models import Case

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
ZERO = "logits after zero ablation of a head"  # layers × heads, V or B L V
MEAN = "logits after mean ablation of a head"
PATCHED = "logit difference after patching a head at a position"  # layers × heads × positions


class Tool(Protocol):
    """One way of looking into a model."""

    def read(self, case: Case) -> Quantities:
        """Everything that is read off without a change."""
        ...

    def ablate(self, case: Case, layer: int, head: int, how: str) -> Tensor:
        """The logits (B, L, V) with the output of a head replaced by zero, or by its mean."""
        ...

    def ablate_side_by_side(self, case: Case, layer: int, how: str) -> Tensor:
        """The last logits (H, V) of one sequence with each head of a layer replaced."""
        ...

    def patch(self, case: Case) -> Tensor:
        """The logit difference for every cell of `patch_cells`."""
        ...

    n_heads: int


def compute(tool: Tool, case: Case) -> Quantities:
    """All quantities of one tool; of a large model only the last position is kept."""
    found = tool.read(case)
    for name, how in ((ZERO, "zero"), (MEAN, "mean")):
        if case.is_large:
            runs = [tool.ablate_side_by_side(case, layer, how) for layer in case.layers]
            found[name] = torch.cat(runs)
            continue
        logits = [
            tool.ablate(case, layer, head, how)
            for layer in case.layers
            for head in range(tool.n_heads)
        ]
        found[name] = torch.stack(logits)
    found[PATCHED] = tool.patch(case)
    return found


def patch_cells(case: Case, n_heads: int) -> list[tuple[int, int, int]]:
    """Layer, position and head of every patch; before the texts part ways nothing can change."""
    changed = (case.clean != case.corrupted)[0].nonzero()[:, 0]
    positions = range(int(changed.min()), case.clean.shape[1])
    return [
        (layer, position, head)
        for layer in case.patched_layers
        for position in positions
        for head in range(n_heads)
    ]


def logit_difference(case: Case, logits: Tensor) -> Tensor:
    """Of the two tokens that the clean text ranks first, at its end."""
    return logit_differences(case, logits)[0]


def logit_differences(case: Case, logits: Tensor) -> Tensor:
    """The same for every sequence."""
    first, second = case.answers
    return logits[:, -1, first] - logits[:, -1, second]


def score_stripe(patterns: Tensor) -> Tensor:
    """The mean weight, in the second half, on the token after the earlier copy; (N, H)."""
    n = patterns.shape[-1] // 2
    stripe = patterns.diagonal(1 - n, -2, -1)  # query i, key i + 1 − n
    return stripe[..., -n:].mean(-1).mean(1)
