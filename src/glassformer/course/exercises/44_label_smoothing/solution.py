"""Cross-entropy against a smoothed target distribution."""

from torch import Tensor


def smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """− Σ q · log p, with q = (1 − ε) · onehot(target) + ε / V; the mean over all tokens"""
    log_p = logits.log_softmax(dim=-1)  # (B, L, V)
    right = log_p.gather(-1, targets[..., None]).squeeze(-1)  # (B, L): log p of the target
    evenly = log_p.mean(dim=-1)  # (B, L): Σ log p / V
    return -((1 - smoothing) * right + smoothing * evenly).mean()
