# mistake: decoder layer i reads the output of encoder layer i instead of the encoder's final output.
import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(
        self, source_embedding, target_embedding, encoder_layers, decoder_layers, head, pad
    ):
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder_layers = nn.ModuleList(encoder_layers)
        self.decoder_layers = nn.ModuleList(decoder_layers)
        self.head = head
        self.pad = pad

    def forward(self, source, target):
        source_mask = (source != self.pad)[:, None, :]
        L = target.shape[1]
        causal = torch.ones(L, L, dtype=torch.bool).tril()
        memory = self.source_embedding(source)
        x = self.target_embedding(target)
        for encoder_layer, decoder_layer in zip(self.encoder_layers, self.decoder_layers):
            memory = encoder_layer(memory, source_mask)
            x = decoder_layer(x, memory, causal, source_mask)
        return self.head(x)
