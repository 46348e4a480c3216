"""The feed-forward network: the same two layers at every position, seeing one token at a time."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError

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
        else:
            hidden = act(self.up(x))
        return self.down(F.dropout(hidden, self.dropout, self.training))

    def extra_repr(self) -> str:
        return f"{self.activation}{', gated' if self.gated else ''}"
