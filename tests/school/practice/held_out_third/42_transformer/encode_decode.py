# correct: split into encode and decode, the causal mask from compared positions
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

    def encode(self, source, source_mask):
        x = self.source_embedding(source)
        for layer in self.encoder_layers:
            x = layer(x, source_mask)
        return x

    def decode(self, target, context, source_mask):
        place = torch.arange(target.shape[1], device=target.device)
        causal = place[:, None] >= place[None, :]
        x = self.target_embedding(target)
        for layer in self.decoder_layers:
            x = layer(x, context, causal, source_mask)
        return x

    def forward(self, source, target):
        source_mask = source.ne(self.pad).unsqueeze(-2)
        return self.head(self.decode(target, self.encode(source, source_mask), source_mask))
