# mistake: the causal mask is the upper triangle: each position sees only itself and the future
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
        L = target.shape[1]
        source_mask = (source != self.pad).unsqueeze(1)
        causal = torch.triu(torch.ones(L, L, dtype=torch.bool))
        context = self.source_embedding(source)
        for layer in self.encoder_layers:
            context = layer(context, source_mask)
        x = self.target_embedding(target)
        for layer in self.decoder_layers:
            x = layer(x, context, causal, source_mask)
        return self.head(x)
