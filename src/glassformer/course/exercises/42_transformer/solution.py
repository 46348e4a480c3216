"""Encoder and decoder, assembled from their layers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Transformer(nn.Module):
    """source → encoder → context;  target, context → decoder → logits"""

    def __init__(
        self,
        source_embedding: nn.Module,
        target_embedding: nn.Module,
        encoder_layers: Sequence[nn.Module],
        decoder_layers: Sequence[nn.Module],
        head: nn.Module,
        pad: int,
    ) -> None:
        super().__init__()
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder_layers = nn.ModuleList(encoder_layers)
        self.decoder_layers = nn.ModuleList(decoder_layers)
        self.head, self.pad = head, pad

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_mask = (source != self.pad)[:, None, :]  # (B, S) → (B, 1, S), for every query
        L = target.shape[1]
        causal = torch.ones(L, L, dtype=torch.bool, device=target.device).tril()
        context = self.source_embedding(source)  # (B, S) → (B, S, C)
        for layer in self.encoder_layers:
            context = layer(context, source_mask)
        x = self.target_embedding(target)  # (B, L) → (B, L, C)
        for layer in self.decoder_layers:
            x = layer(x, context, causal, source_mask)
        return self.head(x)  # (B, L, C) → (B, L, V)
