"""Multi-head attention as layers: projections around a parameterless core.

    x ─ qkv ─ split ─ (norm) ─ (rotate) ─ (cache) ─ core ─ merge ─ out
    [B,L,C]   [B,H,L,D] and twice [B,K,S,D]          [B,H,L,D]   [B,L,C]

Whoever wants to see what attention does hooks `core`: all operands pass through it, and nothing
about the layer changes. Self-attention has one fused projection, cross-attention one for queries
and one for keys and values, which are computed once and kept.
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Bias, Mask, attention, rotate
from glassformer.functional.cache import CrossCache, GrowingCache, StaticCache
from glassformer.functional.positions.rotary import Layout
from glassformer.layers.norm import RMSNorm

# Which linear layers add a bias: none; those of q, k and v; attention's output too; all.
Biases = Literal["none", "qkv", "attention", "all"]
Tables = tuple[Tensor, Tensor]  # cosines and sines of rotary positions


class Core(nn.Module):
    """Attention itself, without parameters: the place where observation attaches."""

    def forward(
        self,
        q: Float[Tensor, "B H L D"],
        k: Float[Tensor, "B K S D"],
        v: Float[Tensor, "B K S E"],
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        dropout: float = 0.0,
    ) -> Float[Tensor, "B H L E"]:
        return attention(
            q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout
        )


class SelfAttention(nn.Module):
    """Every token asks all tokens of its own sequence.

    >>> import torch
    >>> layer = SelfAttention(12, 3)
    >>> layer(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        head_dim: int | None = None,
        biases: Biases = "none",
        head_norm_eps: float | None = None,
        rotary_layout: Layout = "half",
        scale: float | None = None,
        softcap: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = _head_sizes(
            dim, n_heads, n_kv_heads, head_dim
        )
        self.rotary_layout: Layout = rotary_layout
        self.scale, self.softcap, self.dropout = scale, softcap, dropout
        width = (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
        self.qkv = nn.Linear(dim, width, bias=biases != "none")
        self.out = nn.Linear(self.n_heads * self.head_dim, dim, bias=biases in ("attention", "all"))
        if head_norm_eps is not None:  # queries and keys normed per head, before they are rotated
            self.q_norm = RMSNorm(self.head_dim, eps=head_norm_eps)
            self.k_norm = RMSNorm(self.head_dim, eps=head_norm_eps)
        self.has_head_norm = head_norm_eps is not None
        self.core = Core()

    def forward(
        self,
        x: Float[Tensor, "B L C"],
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        tables: Tables | None = None,
        cache: GrowingCache | StaticCache | None = None,
    ) -> Float[Tensor, "B L C"]:
        # Split before transposing: so the gradients of q, k and v are joined without a copy.
        heads = self.qkv(x).unflatten(-1, (-1, self.head_dim))  # B L H+2K D
        parts = heads.split([self.n_heads, self.n_kv_heads, self.n_kv_heads], dim=2)
        q, k, v = (part.transpose(1, 2) for part in parts)  # B H L D, twice B K L D
        if self.has_head_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        if tables is not None:
            q, k = (rotate(t, *tables, layout=self.rotary_layout) for t in (q, k))
        if cache is not None:
            k, v = cache.append(k, v)
        return self.out(merge_heads(attend(self, q, k, v, mask, bias)))


class CrossAttention(nn.Module):
    """Every token asks the tokens of another sequence, the context.

    >>> import torch
    >>> layer = CrossAttention(12, 3, context_dim=7)
    >>> layer(torch.zeros(2, 5, 12), torch.zeros(2, 4, 7)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        *,
        context_dim: int | None = None,
        n_kv_heads: int | None = None,
        head_dim: int | None = None,
        biases: Biases = "none",
        scale: float | None = None,
        softcap: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = _head_sizes(
            dim, n_heads, n_kv_heads, head_dim
        )
        self.scale, self.softcap, self.dropout = scale, softcap, dropout
        has_bias = biases != "none"
        self.q = nn.Linear(dim, self.n_heads * self.head_dim, bias=has_bias)
        self.kv = nn.Linear(
            dim if context_dim is None else context_dim,
            2 * self.n_kv_heads * self.head_dim,
            bias=has_bias,
        )
        self.out = nn.Linear(self.n_heads * self.head_dim, dim, bias=biases in ("attention", "all"))
        self.core = Core()

    def forward(
        self,
        x: Float[Tensor, "B L C"],
        context: Float[Tensor, "B S X"],
        *,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        cache: CrossCache | None = None,
    ) -> Float[Tensor, "B L C"]:
        q = self.q(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # B H L D

        def keys_and_values() -> tuple[Tensor, Tensor]:
            heads = self.kv(context).unflatten(-1, (-1, self.head_dim))  # B S 2K D
            k, v = heads.split([self.n_kv_heads, self.n_kv_heads], dim=2)
            return k.transpose(1, 2), v.transpose(1, 2)  # each B K S D

        k, v = keys_and_values() if cache is None else cache.keep(keys_and_values)
        return self.out(merge_heads(attend(self, q, k, v, mask, bias)))


def attend(
    layer: SelfAttention | CrossAttention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask | Tensor | None,
    bias: Bias | Tensor | None,
) -> Tensor:
    return layer.core(
        q,
        k,
        v,
        mask=mask,
        bias=bias,
        scale=layer.scale,
        softcap=layer.softcap,
        dropout=layer.dropout if layer.training else 0.0,
    )


def merge_heads(heads: Float[Tensor, "B H L D"]) -> Float[Tensor, "B L HD"]:
    return heads.transpose(1, 2).flatten(2)


def _head_sizes(
    dim: int, n_heads: int, n_kv_heads: int | None, head_dim: int | None
) -> tuple[int, int, int]:
    if min(dim, n_heads) < 1:
        raise ConfigError(f"dim and n_heads must be at least 1; got dim={dim}, n_heads={n_heads}.")
    kv = n_heads if n_kv_heads is None else n_kv_heads
    if kv < 1 or n_heads % kv:
        fitting = ", ".join(str(i) for i in range(1, n_heads + 1) if n_heads % i == 0)
        raise ConfigError(
            f"n_heads must be a multiple of n_kv_heads; got n_heads={n_heads}, n_kv_heads={kv}. "
            f"Use {fitting}."
        )
    if head_dim is None and dim % n_heads:
        raise ConfigError(
            f"dim must be divisible by n_heads; got dim={dim}, n_heads={n_heads}. "
            "Use another n_heads, or say head_dim."
        )
    width = dim // n_heads if head_dim is None else head_dim
    if width < 1:
        raise ConfigError(f"head_dim must be at least 1; got {width}.")
    return n_heads, kv, width
