from torch import nn


class FeedForward(nn.Module):
    """down(relu(up(x)))"""

    def __init__(self, dim, hidden_dim):
        super().__init__()
        ...

    def forward(self, x):
        """(B, L, C) → (B, L, C)"""
        ...
