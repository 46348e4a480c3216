"""Direct preference optimization: raise what was preferred, relative to a reference."""

import torch.nn.functional as F
from torch import Tensor


def answer_log_p(logits: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
    """The log-probability of each answer: (B, L, V), (B, L), (B, L) → (B,)"""
    log_p = logits.log_softmax(dim=-1)
    chosen = log_p.gather(2, tokens[..., None])[..., 0]  # (B, L)
    return chosen.masked_fill(~mask, 0.0).sum(dim=1)


def dpo_loss(
    better: Tensor, worse: Tensor, ref_better: Tensor, ref_worse: Tensor, beta: float
) -> Tensor:
    """The DPO loss, on average over the pairs: four times (B,) → a number"""
    gain = better - ref_better.detach()
    other = worse - ref_worse.detach()
    return -F.logsigmoid(beta * (gain - other)).mean()
