"""The logit lens: every state of the residual stream, read as if it were the last."""

from torch import Tensor


def logit_lens(states: Tensor, gain: Tensor, unembed: Tensor) -> tuple[Tensor, Tensor]:
    """Read every state as the last: (N, L, C), (C,), (V, C) → logits (N, L, V), ranks (N, L)"""
    size = states.square().mean(dim=-1, keepdim=True).sqrt()  # (N, L, 1)
    logits = (states / size * gain) @ unembed.T
    final = logits[-1].argmax(dim=-1)  # (L,): what the model says in the end
    own = logits.gather(-1, final.expand(logits.shape[:2])[..., None])  # (N, L, 1)
    return logits, (logits > own).sum(dim=-1)
