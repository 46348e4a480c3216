"""The feed-forward network: the same two layers at every position, seeing one token at a time."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional.bias_sums import biased_gelu, can_sum_on_the_way
from glassformer.functional.gelu import half_precision_gelu

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """down(activation(up(x))), or gated: down(activation(gate(x)) · up(x)) (Shazeer 2020).

    Gate and up are one matrix, the gate first: SwiGLU is "silu" gated, GEGLU "gelu" gated.

    >>> import torch
    >>> FeedForward(6, 11, gated=True)(torch.zeros(2, 3, 6)).shape
    torch.Size([2, 3, 6])
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        *,
        activation: Activation = "relu",
        gated: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ConfigError(
                f"activation must be one of {', '.join(ACTIVATIONS)}; got {activation!r}."
            )
        self.activation, self.gated, self.dropout = activation, gated, dropout
        self.up = nn.Linear(dim, (2 if gated else 1) * hidden_dim, bias=bias)
        self.down = nn.Linear(hidden_dim, dim, bias=bias)

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
        act = ACTIVATIONS[self.activation]
        if self.gated:
            gate, up = self.up(x).chunk(2, dim=-1)
            hidden = act(gate) * up
        elif self.training and self.activation == "gelu":
            hidden = self._learn_gelu(x)
        else:
            hidden = act(self.up(x))
        return self.down(F.dropout(hidden, self.dropout, self.training))

    def _learn_gelu(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... F"]:
        """GELU by kernels for training in half precision, which also sum for the bias."""
        if can_sum_on_the_way(self.up, x):
            return biased_gelu(F.linear(x, self.up.weight), self.up.bias)
        return half_precision_gelu(self.up(x))

    def extra_repr(self) -> str:
        return f"{self.activation}{', gated' if self.gated else ''}"
