# mistake: every encoder layer reads the embedding, not the layer before it
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
        source_mask = source.ne(self.pad).unsqueeze(1)
        L = target.size(1)
        causal = torch.ones(L, L, dtype=torch.bool, device=target.device).tril()
        embedded = self.source_embedding(source)
        for layer in self.encoder_layers:
            context = layer(embedded, source_mask)
        y = self.target_embedding(target)
        for layer in self.decoder_layers:
            y = layer(y, context, causal, source_mask)
        return self.head(y)
