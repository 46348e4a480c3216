"""Small models of every kind that can be decoded by their weights alone."""

import torch
from torch import nn

from glassformer.models import Config, Norms, Output, Positions, build

V = 37
SOURCES = [[2, 7, 1, 8], [2, 8], [1, 8, 2, 8, 4, 5]]
PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6]]

CHANGES: dict[str, dict] = {
    "learned": {},
    "rotary": {"positions": Positions(kind="rotary"), "norms": Norms(kind="rms"), "gated": True},
    "interleaved, head norms, window": {
        "positions": Positions(kind="rotary", layout="interleaved"),
        "norms": Norms(kind="rms", heads=True),
        "activation": "silu",
        "gated": True,
        "biases": "none",
        "window": 3,
    },
    "post-norm": {
        "positions": Positions(kind="rotary"),
        "norms": Norms(place="post", embedding=True, final=False),
        "output": Output(tied=True, bias=True, scale=0.5),
        "head_dim": 6,
        "dim": 22,
        "activation": "relu",
    },
    "no positions, scale": {
        "positions": Positions(kind="none"),
        "norms": Norms(bias=False),
        "attention_scale": 0.2,
        "biases": "qkv",
        "activation": "gelu_tanh",
    },
    "heads of a power of 2": {
        "positions": Positions(kind="rotary"),
        "n_heads": 6,
        "head_dim": 8,
        "norms": Norms(kind="rms"),
    },
    "translator": {
        "family": "encoder_decoder",
        "positions": Positions(kind="sinusoidal"),
        "scaled_embedding": True,
        "n_decoder_layers": 3,
    },
}


def make(name: str, dtype: torch.dtype, device: str = "cpu") -> nn.Module:
    """A model whose weights are large enough that its tokens differ."""
    torch.manual_seed(0)
    sizes = {
        "family": "decoder",
        "vocab_size": V,
        "dim": 20,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "head_dim": 10,
        "hidden_dim": 28,
        "max_len": 160,
        "output": Output(tied=False),
    }
    built = build(Config(**sizes | CHANGES[name])).to(device, dtype).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            scale = 0.5 if parameter.ndim > 1 else 0.1
            parameter.add_(torch.randn(parameter.shape).to(parameter), alpha=scale)
    return built
