"""A block: attention and a feed-forward network, each with a norm and a way around it.

pre-norm    x + f(norm(x))        the way around is free: gradients reach every layer
post-norm   norm(x + f(x))        as in the paper (Vaswani et al. 2017, §3.1)
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
from glassformer.layers.feed_forward import FeedForward

NormPlace = Literal["pre", "post"]


class Block(nn.Module):
    """Self-attention, attention to a context where there is one, and a feed-forward network."""

    def __init__(
        self,
        *,
        attention: SelfAttention,
        feed_forward: FeedForward,
        make_norm: Callable[[], nn.Module],
        cross: CrossAttention | None = None,
        norm_place: NormPlace = "pre",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if norm_place not in ("pre", "post"):
            raise ConfigError(f"norm_place is 'pre' or 'post'; got {norm_place!r}.")
        self.norm_place, self.dropout = norm_place, dropout
        self.attention, self.attention_norm = attention, make_norm()
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
        x = self._around(
            x,
            self.attention_norm,
            lambda y: self.attention(y, mask=mask, bias=bias, tables=tables, cache=cache),
        )
        if self.has_cross:
            x = self._around(
                x,
                self.cross_norm,
                lambda y: self.cross(y, context, mask=context_mask, cache=context_cache),
            )
        return self._around(x, self.feed_forward_norm, self.feed_forward)

    def _around(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_place == "pre":
            return x + F.dropout(part(norm(x)), self.dropout, self.training)
        return norm(x + F.dropout(part(x), self.dropout, self.training))
