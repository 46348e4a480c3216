# mistake: only the last encoder layer is applied: every layer reads the embedding again
import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(self, source_embedding, target_embedding, encoder_layers, decoder_layers, head, pad):
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder_layers = nn.ModuleList(encoder_layers)
        self.decoder_layers = nn.ModuleList(decoder_layers)
        self.head = head
        self.pad = pad

    def forward(self, source, target):
        source_mask = (source != self.pad)[:, None, :]
        n = target.shape[1]
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        x = self.source_embedding(source)
        for layer in self.encoder_layers:
            context = layer(x, source_mask)
        y = self.target_embedding(target)
        for layer in self.decoder_layers:
            y = layer(y, context, causal, source_mask)
        return self.head(y)
