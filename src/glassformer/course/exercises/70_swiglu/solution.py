"""A feed-forward network in which one projection gates the other."""

from torch import Tensor, nn


class SwiGLU(nn.Module):
    """down(silu(gate(x)) · up(x)),  silu(z) = z · sigmoid(z)"""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim, bias=False)
        self.up = nn.Linear(dim, hidden_dim, bias=False)
        self.down = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        z = self.gate(x)  # (B, L, C) → (B, L, F)
        opened = z * z.sigmoid()
        return self.down(opened * self.up(x))  # (B, L, F) → (B, L, C)
