# mistake: each decoder layer gets the output of the encoder layer of the same depth, not the final output of the encoder
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
        L = target.shape[1]
        source_mask = (source != self.pad)[:, None, :]
        causal = torch.ones(L, L, dtype=torch.bool).tril()
        context = self.source_embedding(source)
        x = self.target_embedding(target)
        for encoder, decoder in zip(self.encoder_layers, self.decoder_layers):
            context = encoder(context, source_mask)
            x = decoder(x, context, causal, source_mask)
        return self.head(x)
