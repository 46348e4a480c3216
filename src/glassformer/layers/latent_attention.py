"""Multi-head latent attention (DeepSeek-AI 2024, §2.1): what is cached is narrow, and shared.

    x ─ kv_down ─┬─ norm ─ latent ─(cache)─ kv_up ─ plain keys, values   of every head
    [B,L,C]      └─ rotate ─ turned key ─(cache)─ the rest of the key    shared by all heads

Every head computes its keys and values from one latent of width R. A rotation depends on the
position and could not be moved past `kv_up`, so P dimensions of each key are rotated apart from the
latent. A cache keeps R + P numbers for each token, however many heads there are.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Bias, Mask, rotate
from glassformer.functional.cache import GrowingCache, StaticCache
from glassformer.functional.positions.rotary import Layout
from glassformer.layers.attention import Biases, Core, Tables
from glassformer.layers.norm import RMSNorm

_EPS = 1e-6  # of the norms of latents, whatever the other norms have


class LatentAttention(nn.Module):
    """Self-attention whose keys and values are computed from a cached latent.

    `q_dim` compresses queries too, which saves parameters and no memory; without it they are
    projected at once. Biases are those of the projections down and of the output.

    >>> layer = LatentAttention(12, 3, head_dim=6, value_dim=5, kv_dim=7, rotary_dim=2)
    >>> layer(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        *,
        head_dim: int,
        value_dim: int,
        kv_dim: int,
        rotary_dim: int,
        q_dim: int | None = None,
        biases: Biases = "none",
        rotary_layout: Layout = "half",
        scale: float | None = None,
        softcap: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_latent(head_dim, rotary_dim)
        self.n_heads, self.head_dim, self.value_dim = n_heads, head_dim, value_dim
        self.kv_dim, self.rotary_dim, self.q_dim = kv_dim, rotary_dim, q_dim
        self.plain_dim = head_dim - rotary_dim
        self.rotary_layout: Layout = rotary_layout
        self.scale, self.softcap, self.dropout = scale, softcap, dropout
        has_bias = biases != "none"
        if q_dim is None:
            self.q = nn.Linear(dim, n_heads * head_dim, bias=False)
        else:
            self.q_down = nn.Linear(dim, q_dim, bias=has_bias)
            self.q_norm = RMSNorm(q_dim, eps=_EPS)
            self.q_up = nn.Linear(q_dim, n_heads * head_dim, bias=False)
        self.kv_down = nn.Linear(dim, kv_dim + rotary_dim, bias=has_bias)
        self.kv_norm = RMSNorm(kv_dim, eps=_EPS)
        self.kv_up = nn.Linear(kv_dim, n_heads * (self.plain_dim + value_dim), bias=False)
        self.out = nn.Linear(n_heads * value_dim, dim, bias=biases in ("attention", "all"))
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
        q = self.q(x) if self.q_dim is None else self.q_up(self.q_norm(self.q_down(x)))
        q = q.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # B H L D
        q_plain, q_turned = q.split([self.plain_dim, self.rotary_dim], dim=-1)
        latent, k_turned = self.kv_down(x).split([self.kv_dim, self.rotary_dim], dim=-1)
        latent, k_turned = self.kv_norm(latent).unsqueeze(1), k_turned.unsqueeze(1)  # B 1 L R|P
        if tables is not None:
            q_turned, k_turned = (
                rotate(t, *tables, layout=self.rotary_layout) for t in (q_turned, k_turned)
            )
        if cache is not None:  # as one head, whose "key" is the latent
            latent, k_turned = cache.append(latent, k_turned)
        k_plain, v = self._expand(latent.squeeze(1))
        q = torch.cat([q_plain, q_turned], dim=-1)
        k = torch.cat([k_plain, k_turned.expand(-1, self.n_heads, -1, -1)], dim=-1)
        out = self.core(
            q,
            k,
            v,
            mask=mask,
            bias=bias,
            scale=self.scale,
            softcap=self.softcap,
            dropout=self.dropout if self.training else 0.0,
        )
        return self.out(out.transpose(1, 2).flatten(2))  # B H L E → B L H·E

    def _expand(
        self, latent: Float[Tensor, "B S R"]
    ) -> tuple[Float[Tensor, "B H S n"], Float[Tensor, "B H S E"]]:
        """The plain part of each head's keys, and its values."""
        heads = self.kv_up(latent).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k_plain, v = heads.split([self.plain_dim, self.value_dim], dim=-1)
        return k_plain, v


def check_latent(head_dim: int, rotary_dim: int) -> None:
    """Reject a rotated part that leaves nothing of a head for the latent."""
    if not 0 < rotary_dim < head_dim:
        raise ConfigError(
            f"rotary_dim must be 1 … head_dim − 1; got rotary_dim={rotary_dim}, "
            f"head_dim={head_dim}."
        )
