"""Self-attention with one head, twice: with explicit parameters, and with linear layers.

Both compute the same. They differ in how the matrices are stored and initialized:

    parameters   x @ weight     weight (C, D)   Xavier-uniform, because we choose it below
    nn.Linear    x @ weightᵀ    weight (D, C)   Kaiming-uniform with a = √5, that is U(±1/√C)
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class SingleHeadParameters(nn.Module):
    """Self-attention with every matrix and every product written out.

        q, k, v = x W_q, x W_k, x W_v        out = softmax(q kᵀ / √D) v

    >>> attend = SingleHeadParameters(dim=6, head_dim=4)
    >>> out, weights = attend(torch.rand(2, 5, 6))
    >>> out.shape, weights.shape
    (torch.Size([2, 5, 4]), torch.Size([2, 5, 5]))
    """

    def __init__(self, dim: int, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.q_weight = nn.Parameter(torch.empty(dim, head_dim))
        self.k_weight = nn.Parameter(torch.empty(dim, head_dim))
        self.v_weight = nn.Parameter(torch.empty(dim, head_dim))
        for weight in (self.q_weight, self.k_weight, self.v_weight):
            # Xavier treats fan-in and fan-out alike, so it works for (in, out). Kaiming takes
            # fan-in from the second dimension, as in nn.Linear: here that is the fan-out.
            nn.init.xavier_uniform_(weight)

    def forward(
        self, x: Float[Tensor, "B L C"]
    ) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B L L"]]:
        q = x @ self.q_weight  # (B, L, C) × (C, D) → (B, L, D)
        k = x @ self.k_weight
        v = x @ self.v_weight
        scores = q @ k.transpose(1, 2) / math.sqrt(self.head_dim)  # (B, L, D) × (B, D, L)
        weights = scores.softmax(dim=-1)  # over the keys: the weights of each query sum to 1
        return weights @ v, weights  # (B, L, L) × (B, L, D) → (B, L, D)


class SingleHeadLinear(nn.Module):
    """The same self-attention with linear layers, as it is usually written.

        q, k, v = q_proj(x), k_proj(x), v_proj(x)        out = softmax(q kᵀ / √D) v

    >>> plain, linear = SingleHeadParameters(6, 4), SingleHeadLinear(6, 4)
    >>> with torch.no_grad():
    ...     for name in "qkv":
    ...         weight = getattr(plain, f"{name}_weight")
    ...         _ = getattr(linear, f"{name}_proj").weight.copy_(weight.T)
    >>> x = torch.rand(2, 5, 6)
    >>> torch.allclose(plain(x)[0], linear(x)[0], atol=1e-6)
    True
    """

    def __init__(self, dim: int, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.q_proj = nn.Linear(dim, head_dim, bias=False)
        self.k_proj = nn.Linear(dim, head_dim, bias=False)
        self.v_proj = nn.Linear(dim, head_dim, bias=False)

    def forward(
        self, x: Float[Tensor, "B L C"]
    ) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B L L"]]:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, L, C) → (B, L, D)
        scores = q @ k.transpose(1, 2) / math.sqrt(self.head_dim)  # (B, L, D) × (B, D, L)
        weights = scores.softmax(dim=-1)
        return weights @ v, weights  # (B, L, L) × (B, L, D) → (B, L, D)
