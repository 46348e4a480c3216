# correct: separate encode and decode methods, masks from comparisons, functools.reduce for the encoder
from functools import reduce

import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(
        self, source_embedding, target_embedding, encoder_layers, decoder_layers, head, pad
    ):
        super().__init__()
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder_layers = nn.ModuleList(list(encoder_layers))
        self.decoder_layers = nn.ModuleList(list(decoder_layers))
        self.head, self.pad = head, pad

    def encode(self, source, mask):
        start = self.source_embedding(source)
        return reduce(lambda x, layer: layer(x, mask), self.encoder_layers, start)

    def decode(self, target, context, context_mask):
        place = torch.arange(target.size(1), device=target.device)
        past = place.unsqueeze(0) <= place.unsqueeze(1)
        x = self.target_embedding(target)
        for layer in self.decoder_layers:
            x = layer(x, context, past, context_mask)
        return x

    def forward(self, source, target):
        real = torch.ne(source, self.pad).unsqueeze(1)
        return self.head(self.decode(target, self.encode(source, real), real))
