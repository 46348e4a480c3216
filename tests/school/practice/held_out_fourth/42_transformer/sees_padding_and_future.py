# mistake: two at once: the source mask is True at padding, and the target mask lets the next token through
import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(self, source_embedding, target_embedding, encoder_layers, decoder_layers, head, pad):
        super().__init__()
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder_layers = nn.ModuleList(encoder_layers)
        self.decoder_layers = nn.ModuleList(decoder_layers)
        self.head, self.pad = head, pad

    def forward(self, source, target):
        keep = (source == self.pad)[:, None]
        places = torch.arange(target.shape[1])
        causal = places[None, :] <= places[:, None] + 1
        context = self.source_embedding(source)
        for layer in self.encoder_layers:
            context = layer(context, keep)
        hidden = self.target_embedding(target)
        for layer in self.decoder_layers:
            hidden = layer(hidden, context, causal, keep)
        return self.head(hidden)
