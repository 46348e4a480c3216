"""Parts that checks hand to learners' code, and what watches how large its tensors are."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode


class Attention(nn.Module):
    """Multi-head attention with a boolean mask (B, L, S), True where a query may look."""

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (
            proj(y).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for proj, y in ((self.q_proj, x), (self.k_proj, context), (self.v_proj, context))
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, H, L, S)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-3), -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Two linear layers with ReLU between them."""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that an operation makes; views make nothing."""

    size = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its whole compiler, for nothing, at the first operator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, Tensor) and not any(_share_storage(each, given) for given in args):
                self.size = max(self.size, each.numel())
        return made


def _share_storage(one: Tensor, other: Any) -> bool:
    if not isinstance(other, Tensor):
        return False
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
