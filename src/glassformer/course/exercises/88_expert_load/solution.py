"""How evenly experts are used, and which choices find room."""

from torch import Tensor
from torch.nn.functional import one_hot


def balance_loss(logits: Tensor, k: int) -> Tensor:
    """N Σ fᵢ Pᵢ: share of choices times mean probability, for all experts: (T, N) → ()"""
    n_experts = logits.shape[-1]
    chosen = logits.topk(k, dim=-1).indices  # (T, k)
    counts = chosen.flatten().bincount(minlength=n_experts)  # (N,): no gradient
    shares = counts / counts.sum()
    means = logits.softmax(dim=-1).mean(dim=0)  # (N,)
    return n_experts * (shares * means).sum()


def fits(experts: Tensor, n_experts: int, capacity: int) -> Tensor:
    """Which choices are among the first `capacity` of their expert: (T, k) → (T, k)"""
    choices = experts.flatten()  # token by token, first choice first
    place = one_hot(choices, n_experts).cumsum(dim=0)  # (T · k, N): how often chosen up to here
    place = place.gather(1, choices[:, None])[:, 0]  # from 1, among the choices of its own expert
    return (place <= capacity).reshape(experts.shape)
