"""The residual connection and the norm: the two correct orders.

    post-norm   x ──┬── sublayer ── + ── norm ──      pre-norm   x ──┬── norm ── sublayer ── + ──
                    └───────────────┘                                └───────────────────────┘

The sublayer's output is always added to the unnormalized x. Adding it to the normalized x is
neither of the two: the residual stream then no longer carries x, and its norm is lost at every
layer.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn


def post_norm(
    x: Float[Tensor, "B L C"], sublayer: Callable[[Tensor], Tensor], norm: nn.Module
) -> Float[Tensor, "B L C"]:
    """norm(x + sublayer(x)), as in the paper (Vaswani et al. 2017, §3.1).

    >>> import torch
    >>> norm = nn.LayerNorm(2, eps=0.0, elementwise_affine=False)
    >>> post_norm(torch.tensor([[[3.0, 5.0]]]), lambda x: 0 * x, norm).tolist()
    [[[-1.0, 1.0]]]
    """
    return norm(x + sublayer(x))


def pre_norm(
    x: Float[Tensor, "B L C"], sublayer: Callable[[Tensor], Tensor], norm: nn.Module
) -> Float[Tensor, "B L C"]:
    """x + sublayer(norm(x)), which trains deep stacks without warm-up (Xiong et al. 2020).

    A sublayer that returns zeros changes nothing:

    >>> import torch
    >>> norm = nn.LayerNorm(2, eps=0.0, elementwise_affine=False)
    >>> pre_norm(torch.tensor([[[3.0, 5.0]]]), lambda x: 0 * x, norm).tolist()
    [[[3.0, 5.0]]]
    """
    return x + sublayer(norm(x))
