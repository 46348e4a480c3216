"""Initial weights as in published papers, where a recipe asks for them."""

from typing import Literal

import torch
from torch import nn

from glassformer.layers import ExpertLinear, TokenEmbedding
from glassformer.layers.embedding import LearnedPositions

Initial = Literal["ours", "xavier", "gpt2"]


@torch.no_grad()
def initialize_weights(model: nn.Module, kind: Initial) -> None:
    """Initialize the weights of a new model.

    ::

        ours      unchanged, as `build` initialized them
        xavier    Xavier uniform (Glorot and Bengio 2010), biases 0; fused projections are
                  initialized one by one, q, k and v with a gain of 1/√2, as in fairseq
        gpt2      normal, std 0.02; projections into the residual stream are divided by
                  √(2 n_layers) (Radford et al. 2019, §2.3)

    >>> layer = nn.Linear(600, 600)
    >>> initialize_weights(layer, "xavier")
    >>> layer.weight.detach().abs().max()  # √(6 / 1200)
    tensor(0.0707)
    """
    if kind == "ours":
        return
    n_blocks = sum(1 for name, _ in model.named_modules() if name.endswith(".feed_forward"))
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear):
            if kind == "xavier":
                n_fused = {"qkv": 3, "kv": 2, "q": 1}.get(name.rsplit(".", 1)[-1], 0)
                for matrix in part.weight.chunk(max(1, n_fused)):
                    nn.init.xavier_uniform_(matrix, gain=2**-0.5 if n_fused else 1.0)
            else:
                ends = name.endswith((".out", ".down"))
                nn.init.normal_(part.weight, std=_residual_std(n_blocks) if ends else 0.02)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, ExpertLinear):
            _initialize_experts(part, kind, _residual_std(n_blocks) if "down" in name else 0.02)
        elif kind == "gpt2" and isinstance(part, TokenEmbedding | LearnedPositions):
            nn.init.normal_(part.weight, std=0.02)


def _residual_std(n_blocks: int) -> float:
    return 0.02 / (2 * max(1, n_blocks)) ** 0.5


def _initialize_experts(layer: ExpertLinear, kind: Initial, std: float) -> None:
    for matrix in layer.weight.unbind():
        if kind == "xavier":
            nn.init.xavier_uniform_(matrix)
        else:
            nn.init.normal_(matrix, std=std)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
