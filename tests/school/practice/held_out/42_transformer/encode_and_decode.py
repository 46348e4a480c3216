# correct: methods encode and decode, the causal mask by comparing positions
import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(
        self, source_embedding, target_embedding, encoder_layers, decoder_layers, head, pad
    ):
        super().__init__()
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder_layers = nn.ModuleList()
        self.encoder_layers.extend(encoder_layers)
        self.decoder_layers = nn.ModuleList()
        self.decoder_layers.extend(decoder_layers)
        self.head, self.pad = head, pad

    def encode(self, source, real):
        states = self.source_embedding(source)
        for block in self.encoder_layers:
            states = block(states, real)
        return states

    def decode(self, target, memory, real):
        place = torch.arange(target.size(1), device=target.device)
        no_future = place.view(-1, 1) >= place.view(1, -1)
        states = self.target_embedding(target)
        for block in self.decoder_layers:
            states = block(states, memory, no_future, real)
        return states

    def forward(self, source, target):
        real = source.ne(self.pad).unsqueeze(-2)
        return self.head(self.decode(target, self.encode(source, real), real))
