"""A stack of blocks with its positions: what encoders and decoders are made of."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ShapeError
from glassformer.functional import ALiBi, Bias, Mask, RelativeBuckets
from glassformer.functional.autocast import autocast_dtype
from glassformer.layers import (
    Block,
    CrossAttention,
    FeedForward,
    LatentAttention,
    LearnedPositions,
    MixtureOfExperts,
    Router,
    SelfAttention,
    SinusoidalPositions,
    norm_maker,
)
from glassformer.layers.attention import Tables
from glassformer.models.cache import ModelCache
from glassformer.models.config import Config


class Stack(nn.Module):
    """Embedded tokens in, hidden states out; adds places where these are vectors.

    `causal` tells relative buckets that nothing lies ahead, `cross` adds attention to a context.
    """

    def __init__(self, config: Config, n_layers: int, *, causal: bool, cross: bool = False) -> None:
        super().__init__()
        self.config, self.causal = config, causal
        self.residual_is_half = False  # under autocast: training sets it
        make_norm = norm_maker(
            config.norms.kind, config.dim, eps=config.norms.eps, bias=config.norms.bias
        )
        kind = config.positions.kind
        if kind == "learned":
            self.positions = LearnedPositions(config.max_len, config.dim)
        elif kind == "sinusoidal":
            self.positions = SinusoidalPositions(
                config.dim, base=config.positions.base, layout=config.positions.layout
            )
        elif kind == "relative":
            self.buckets = nn.Parameter(torch.empty(config.positions.n_buckets, config.n_heads))
            nn.init.normal_(self.buckets, std=0.02)
        if config.norms.embedding:
            self.embedding_norm = make_norm()
        self.blocks = nn.ModuleList(
            _block(config, i, make_norm, cross=cross) for i in range(n_layers)
        )
        if config.norms.final:
            self.final_norm = make_norm()

    def forward(
        self,
        x: Float[Tensor, "B L C"],
        *,
        positions: Int[Tensor, " L"] | Int[Tensor, "B L"],
        mask: Mask | None = None,
        global_mask: Mask | None = None,
        cache: ModelCache | None = None,
        context: Float[Tensor, "B S C"] | None = None,
        context_mask: Mask | None = None,
    ) -> Float[Tensor, "B L C"]:
        """`global_mask` is for the layers in config.global_layers, `mask` for all others."""
        config = self.config
        if config.positions.kind in ("learned", "sinusoidal"):
            x = x + self.positions(positions).to(x.dtype)
        if config.norms.embedding:
            x = self.embedding_norm(x)
        x = F.dropout(x, config.dropout.embedding, self.training)
        if self.residual_is_half and (dtype := autocast_dtype(x)) is not None:
            x = x.to(dtype)
        tables, local_tables = self._tables(positions)
        bias = self._bias(x.device, None if cache is None else cache.length)
        for i, block in enumerate(self.blocks):
            is_global = i in config.global_layers
            x = block(
                x,
                mask=global_mask if is_global else mask,
                bias=bias,
                tables=tables if is_global else local_tables,
                cache=None if cache is None else cache.layers[i],
                context=context,
                context_mask=context_mask,
                context_cache=None if cache is None else cache.cross[i],
            )
        return self.final_norm(x) if config.norms.final else x

    def _tables(self, positions: Tensor) -> tuple[Tables | None, Tables | None]:
        """Cosines and sines for the global layers, and for the others: the same but for a base."""
        if self.config.positions.kind != "rotary":
            return None, None
        tables = self.config.rotary().tables(positions)
        if self.config.positions.local_base is None:
            return tables, tables
        return tables, self.config.rotary(local=True).tables(positions)

    def _bias(self, device: torch.device, offset: int | Tensor | None) -> Bias | None:
        positions = self.config.positions
        if positions.kind == "alibi":
            slopes = ALiBi.of_heads(self.config.n_heads, device=device).slopes
            return ALiBi(slopes, offset=offset)
        if positions.kind == "relative":
            return RelativeBuckets(
                self.buckets,
                bidirectional=not self.causal,
                max_distance=positions.max_distance,
                offset=offset,
            )
        return None


def _block(config: Config, layer: int, make_norm: Callable[[], nn.Module], *, cross: bool) -> Block:
    shared: Any = {
        "n_kv_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "biases": config.biases,
        "scale": config.attention_scale,
        "softcap": config.softcap,
        "dropout": config.dropout.weights,
    }
    return Block(
        attention=_attention(config, shared),
        attention_norm=make_norm() if layer or config.norms.first else nn.Identity(),
        cross=CrossAttention(config.dim, config.n_heads, **shared) if cross else None,
        feed_forward=_feed_forward(config, layer),
        make_norm=make_norm,
        norm_place=config.norms.place,
        dropout=config.dropout.residual,
    )


def _attention(config: Config, shared: dict[str, Any]) -> SelfAttention | LatentAttention:
    latent, layout = config.latent, config.positions.layout
    if latent is None:
        eps = config.norms.eps if config.norms.heads else None
        return SelfAttention(
            config.dim, config.n_heads, head_norm_eps=eps, rotary_layout=layout, **shared
        )
    options = {name: value for name, value in shared.items() if name != "n_kv_heads"}
    return LatentAttention(
        config.dim,
        config.n_heads,
        value_dim=latent.value_dim,
        kv_dim=latent.kv_dim,
        rotary_dim=latent.rotary_dim,
        q_dim=latent.q_dim,
        rotary_layout=layout,
        **options,
    )


def _feed_forward(config: Config, layer: int) -> FeedForward | MixtureOfExperts:
    shared: Any = {
        "activation": config.activation,
        "gated": config.gated,
        "bias": config.biases == "all",
        "dropout": config.dropout.hidden,
    }
    experts = config.experts
    if experts is None or layer in experts.dense_layers:
        return FeedForward(config.dim, config.hidden_dim, **shared)
    router = Router(
        config.dim,
        n_experts=experts.n_experts,
        n_active=experts.n_active,
        gate=experts.gate,
        normalization=experts.normalization,
        scale=experts.scale,
        n_groups=experts.n_groups,
        n_active_groups=experts.n_active_groups,
        selection_bias=experts.selection_bias,
    )
    width = experts.n_shared * experts.hidden_dim  # side by side, networks are one network
    return MixtureOfExperts(
        config.dim,
        experts.hidden_dim,
        router=router,
        shared=FeedForward(config.dim, width, **shared) if width else None,
        **shared,
    )


def token_positions(
    tokens: Int[Tensor, "B L"], config: Config, cache: ModelCache | None
) -> Int[Tensor, " L"]:
    """The positions of these tokens, after those in the cache; beyond max_len is an error."""
    L = tokens.shape[1]
    start = 0 if cache is None else cache.length
    known = isinstance(start, int)
    if config.positions.kind == "learned" and known and start + L > config.max_len:
        raise ShapeError(
            f"At most max_len={config.max_len} tokens have a place; got {start + L}. "
            "Shorten the text, or use a model with rotary, ALiBi or sinusoidal positions."
        )
    return torch.arange(L, device=tokens.device) + start
