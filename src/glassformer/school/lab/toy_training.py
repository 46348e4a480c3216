"""Training small models on made-up tasks, for experiments that take seconds."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.school.lab.progress import ProgressCallback
from glassformer.training import Schedule, clip_gradients, cross_entropy_sum
from glassformer.training.loss import IGNORED

Batch = tuple[Int[Tensor, "B L"], Int[Tensor, "B L"]]  # tokens, and targets of which some are none


def train_toy(
    model: nn.Module,
    draw: Callable[[torch.Generator], Batch],
    *,
    steps: int,
    schedule: Schedule,
    seed: int,
    progress: ProgressCallback,
    smoothing: float = 0.0,
    clip: float = 1.0,
    predict: Callable[..., Any] | None = None,
    losses: list[float] | None = None,
    extra_loss: Callable[[], Tensor] | None = None,
) -> list[float]:
    """Train on new random batches in each step; returns the loss of each step.

    Every model that is trained with one seed sees the same batches. A given list of `losses` grows
    step by step, so that it can be drawn meanwhile. `extra_loss` is called after each pass and
    added to what is minimized, but not to these losses.
    """
    generator = torch.Generator().manual_seed(seed)
    # The paper's Adam (Vaswani et al. 2017, §5.3); fused, because small models have many parameters
    # of few numbers, and a call for each of them would take longer than the arithmetic.
    optimizer = torch.optim.Adam(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    forward = model if predict is None else predict
    losses = [] if losses is None else losses
    model.train()
    for step in range(steps):
        tokens, targets = draw(generator)
        loss = mean_loss(forward(tokens), targets, smoothing=smoothing)
        optimizer.zero_grad()
        (loss if extra_loss is None else loss + extra_loss()).backward()
        clip_gradients(model.parameters(), clip)
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        optimizer.step()
        losses.append(loss.item())
        progress((step + 1) / steps)
    model.eval()
    return losses


def mean_loss(
    logits: Float[Tensor, "B L V"], targets: Int[Tensor, "B L"], *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The cross-entropy of a target, on average."""
    return cross_entropy_sum(logits, targets, smoothing=smoothing) / (targets != IGNORED).sum()


def accuracy(logits: Float[Tensor, "B L V"], targets: Int[Tensor, "B L"]) -> float:
    """How many of the targets are the likeliest token."""
    asked = targets != IGNORED
    return float((logits.argmax(-1) == targets)[asked].float().mean())


def warmup_cosine(lr: float, steps: int, *, warmup: int | None = None) -> Schedule:
    """Up within a tenth of the steps, then down along half a wave."""
    up = steps // 10 if warmup is None else warmup
    return Schedule(kind="cosine", lr=lr, warmup=up, steps=steps, least=0.1 * lr)
