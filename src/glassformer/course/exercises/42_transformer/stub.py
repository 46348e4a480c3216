import torch
from torch import nn


class Transformer(nn.Module):
    """source → encoder → context;  target, context → decoder → logits"""

    def __init__(
        self, source_embedding, target_embedding, encoder_layers, decoder_layers, head, pad
    ):
        super().__init__()
        ...

    def forward(self, source, target): ...
