"""An encoder layer as in the paper: two sublayers, each with a residual connection and a norm."""

from torch import Tensor, nn


class EncoderLayer(nn.Module):
    """x → norm(x + dropout(attention(x))) → norm(x + dropout(feed_forward(x)))"""

    def __init__(
        self, attention: nn.Module, feed_forward: nn.Module, dim: int, dropout: nn.Module
    ) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.dropout = dropout

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        # Dropout acts on the branch only: the residual connection stays intact.
        y = self.attention_norm(x + self.dropout(self.attention(x, x, mask)))  # (B, L, C)
        return self.feed_forward_norm(y + self.dropout(self.feed_forward(y)))  # (B, L, C)
