"""A decoder layer as in the paper: self-attention, cross-attention, feed-forward."""

from torch import Tensor, nn


class DecoderLayer(nn.Module):
    """x → self-attention → attention to the context → feed-forward, each norm(x + sublayer(x))"""

    def __init__(
        self, attention: nn.Module, cross: nn.Module, feed_forward: nn.Module, dim: int
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.attention_norm = nn.LayerNorm(dim)
        self.cross_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def forward(
        self,
        x: Tensor,  # (B, L, C)
        context: Tensor,  # (B, S, C)
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        x = self.attention_norm(x + self.attention(x, x, mask))
        x = self.cross_norm(x + self.cross(x, context, context_mask))  # queries from x: still L
        return self.feed_forward_norm(x + self.feed_forward(x))
