# mistake: adds the input of the layer once more at the end
from torch import nn
class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention, self.feed_forward, self.dropout = attention, feed_forward, dropout
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
    def forward(self, x, mask=None):
        y = self.attention_norm(x + self.dropout(self.attention(x, x, mask)))
        y = self.feed_forward_norm(y + self.dropout(self.feed_forward(y)))
        return x + y
