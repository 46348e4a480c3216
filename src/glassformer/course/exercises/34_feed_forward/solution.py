"""The same two layers at every position."""

from torch import Tensor, nn


class FeedForward(nn.Module):
    """down(relu(up(x)))"""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.up(x).relu()  # (B, L, C) → (B, L, F)
        return self.down(hidden)  # (B, L, F) → (B, L, C)
