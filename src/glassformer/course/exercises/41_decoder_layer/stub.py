from torch import nn


class DecoderLayer(nn.Module):
    """x → self-attention → attention to the context → feed-forward, each norm(x + sublayer(x))"""

    def __init__(self, attention, cross, feed_forward, dim):
        super().__init__()
        ...

    def forward(self, x, context, mask=None, context_mask=None): ...
