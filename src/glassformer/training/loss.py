"""Cross-entropy with label smoothing, as a sum over targets.

A mean of means would give a short micro-batch the same weight as a long one. Sums over
micro-batches and processes, divided once by the number of all targets, do not.
"""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

IGNORED = -100  # no target: padding, or a token that is not masked


def cross_entropy_sum(
    logits: Float[Tensor, "*B V"], targets: Int[Tensor, "*B"], *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """− Σ ((1 − s) log p(target) + s/V Σ_v log p(v)) over targets not ignored, in float32.

    (Szegedy et al. 2016, §7)

    >>> import torch
    >>> logits, targets = torch.zeros(1, 3, 4), torch.tensor([[1, 2, IGNORED]])
    >>> cross_entropy_sum(logits, targets, smoothing=0.1)  # 2 · log 4
    tensor(2.7726)
    """
    return F.cross_entropy(
        logits.flatten(0, -2).float(),  # (B, L, V) → (BL, V)
        targets.flatten(),
        ignore_index=IGNORED,
        label_smoothing=smoothing,
        reduction="sum",
    )


def disagreement_sum(
    logits: Float[Tensor, "*B V"], other: Float[Tensor, "*B V"], targets: Int[Tensor, "*B"]
) -> Float[Tensor, ""]:
    """½ Σ (KL(p‖q) + KL(q‖p)) = ½ Σ (p − q)(log p − log q) over targets not ignored.

    The disagreement of two passes over one batch with different dropout masks: R-Drop (Liang et al.
    2021).

    >>> import torch
    >>> targets = torch.tensor([[1, IGNORED]])
    >>> disagreement_sum(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3), targets)
    tensor(0.)
    """
    log_p, log_q = (x.float().log_softmax(-1) for x in (logits, other))
    gaps = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)  # (B, L, V) → (B, L)
    return 0.5 * (gaps * (targets != IGNORED)).sum()


def count_hits(logits: Float[Tensor, "*B V"], targets: Int[Tensor, "*B"]) -> Int[Tensor, ""]:
    """The number of targets that are the most likely token.

    >>> import torch
    >>> count_hits(torch.eye(3)[None], torch.tensor([[0, 2, IGNORED]]))
    tensor(1)
    """
    return (logits.argmax(-1) == targets).sum()
