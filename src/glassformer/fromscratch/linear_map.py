"""A linear layer on a sequence: it maps the last dimension and leaves the others alone.

    y[b, l, f] = Σ_c x[b, l, c] · weight[f, c] + bias[f]

The sum runs only over c, so no token sees another: mixing tokens is the job of attention. The three
functions below are three readings of the formula, with the same result.
"""

from jaxtyping import Float
from torch import Tensor, nn


def map_whole(layer: nn.Linear, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B L F"]:
    """Apply the layer to everything at once, as usual.

    >>> import torch
    >>> layer = nn.Linear(4, 2, bias=False)
    >>> layer.weight = nn.Parameter(torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]]))
    >>> x = torch.arange(12.0).view(1, 3, 4)
    >>> map_whole(layer, x).tolist()  # of every token, the sum and the last number
    [[[6.0, 3.0], [22.0, 7.0], [38.0, 11.0]]]
    """
    return layer(x)  # (B, L, C) → (B, L, F)


def map_flattened(layer: nn.Linear, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B L F"]:
    """Flatten all sequences into one list of tokens, map it, and restore the shape.

    >>> import torch
    >>> layer, x = nn.Linear(4, 2), torch.rand(1, 3, 4)
    >>> torch.allclose(map_flattened(layer, x), map_whole(layer, x))
    True
    """
    tokens = x.flatten(0, 1)  # (B, L, C) → (B·L, C)
    return layer(tokens).unflatten(0, x.shape[:2])  # (B·L, F) → (B, L, F)


def map_each_token(layer: nn.Linear, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B L F"]:
    """Map one token at a time: slow, but the plainest statement of what happens.

    >>> import torch
    >>> layer, x = nn.Linear(4, 2), torch.rand(1, 3, 4)
    >>> torch.allclose(map_each_token(layer, x), map_whole(layer, x))
    True
    """
    B, L, _ = x.shape
    y = x.new_empty(B, L, layer.out_features)
    for b in range(B):
        for l in range(L):
            y[b, l] = layer(x[b, l])  # (C) → (F)
    return y
