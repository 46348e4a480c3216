from torch import nn


class EncoderLayer(nn.Module):
    """x → norm(x + dropout(attention(x))) → norm(x + dropout(feed_forward(x)))"""

    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        ...

    def forward(self, x, mask=None): ...
