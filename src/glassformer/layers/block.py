"""A Transformer block: attention and a feed-forward network, each with a norm and a residual.

pre-norm    x = x + f(norm(x))    nothing but additions on the residual stream: gradients reach
                                  every layer
post-norm   x = norm(x + f(x))    as in the paper (Vaswani et al. 2017, §3.1)
"""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Bias, Mask
from glassformer.functional.cache import CrossCache, GrowingCache, StaticCache
from glassformer.layers.attention import CrossAttention, SelfAttention, Tables
from glassformer.layers.experts import MixtureOfExperts
from glassformer.layers.feed_forward import FeedForward
from glassformer.layers.latent_attention import LatentAttention

NormPlace = Literal["pre", "post"]


class Block(nn.Module):
    """Self-attention, cross-attention where there is a context, and a feed-forward network."""

    def __init__(
        self,
        *,
        attention: SelfAttention | LatentAttention,
        feed_forward: FeedForward | MixtureOfExperts,
        make_norm: Callable[[], nn.Module],
        attention_norm: nn.Module | None = None,
        cross: CrossAttention | None = None,
        norm_place: NormPlace = "pre",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if norm_place not in ("pre", "post"):
            raise ConfigError(f"norm_place must be 'pre' or 'post'; got {norm_place!r}.")
        self.norm_place, self.dropout = norm_place, dropout
        self.attention = attention
        self.attention_norm = make_norm() if attention_norm is None else attention_norm
        if cross is not None:
            self.cross, self.cross_norm = cross, make_norm()
        self.has_cross = cross is not None
        self.feed_forward, self.feed_forward_norm = feed_forward, make_norm()

    def forward(
        self,
        x: Float[Tensor, "B L C"],
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        tables: Tables | None = None,
        cache: GrowingCache | StaticCache | None = None,
        context: Float[Tensor, "B S X"] | None = None,
        context_mask: Mask | Tensor | None = None,
        context_cache: CrossCache | None = None,
    ) -> Float[Tensor, "B L C"]:
        if self.norm_place == "pre":
            y = self.attention(
                self.attention_norm(x), mask=mask, bias=bias, tables=tables, cache=cache
            )
            x = x + self._drop(y)
            if self.has_cross:
                y = self.cross(self.cross_norm(x), context, mask=context_mask, cache=context_cache)
                x = x + self._drop(y)
            return x + self._drop(self.feed_forward(self.feed_forward_norm(x)))

        y = self.attention(x, mask=mask, bias=bias, tables=tables, cache=cache)
        x = self.attention_norm(x + self._drop(y))
        if self.has_cross:
            y = self.cross(x, context, mask=context_mask, cache=context_cache)
            x = self.cross_norm(x + self._drop(y))
        return self.feed_forward_norm(x + self._drop(self.feed_forward(x)))

    def _drop(self, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B L C"]:
        return F.dropout(x, self.dropout, self.training)
