"""One decoding step on a CPU as a few operations per layer, without a module.

    token ─ embed ─┬─ norm ─ qkv ─ rotate ─ keep k, v ─ attend ─ out ─(+)─ … ─ norm ─ head
                   └───────────────────────────────────────────────────┘

What modules check or set up anew at every step (shapes, masks, rotary tables, dropout) is settled
once, in the constructor; the arithmetic is that of the modules.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.generation.output_selection import select_rows, spread_logits
from glassformer.generation.products import gelu, multiply
from glassformer.layers.feed_forward import ACTIVATIONS
from glassformer.models.decoder_weights import (
    AttentionWeights,
    CrossWeights,
    DecoderWeights,
    FeedForwardWeights,
    Norm,
)

_FEW = 16  # keys: with fewer, a dense mask keeps NaN visible, see functional/backends/sdpa.py


class Step:
    """Weights, tables of positions and the memory of a batch; a call reads one token per row.

    `memory` is (layers, B, capacity, 2, K, D): the keys and values of all layers in one tensor.
    `missing` counts the padding at the beginning of each row. Only the tokens of `outputs` get
    logits, if it is given; those of others are −∞.
    """

    def __init__(
        self,
        weights: DecoderWeights,
        *,
        batch: int,
        capacity: int,
        missing: Int[Tensor, " B"] | None = None,
        outputs: Int[Tensor, " n"] | None = None,
    ) -> None:
        config, like = weights.config, weights.embedding
        self.outputs = outputs
        if outputs is not None:
            weights = weights._replace(head=select_rows(weights.head, outputs))
        self.weights, self.missing, self.window = weights, missing, config.window
        self.heads, self.kv_heads, self.head_dim = (
            config.n_heads,
            config.n_kv_heads,
            config.head_dim,
        )
        self.options = {
            "scale": config.attention_scale,
            "enable_gqa": self.heads != self.kv_heads,
        }
        self.is_pre_norm = config.norms.place == "pre"
        self.is_gated = config.gated
        self.activate = gelu if config.activation == "gelu" else ACTIVATIONS[config.activation]
        self.memory = like.new_empty(
            len(weights.stack.layers), batch, capacity, 2, self.kv_heads, self.head_dim
        )
        self.contexts: list[tuple[Tensor, Tensor]] = []  # keys and values of cross-attention
        self.context_mask: Tensor | None = None
        self.layout = config.positions.layout
        self._set_up_places(capacity)

    def _set_up_places(self, capacity: int) -> None:
        config, weights = self.weights.config, self.weights
        places = torch.arange(capacity)
        self.added = None
        if weights.stack.positions is not None:
            added = weights.stack.positions(places).detach()
            self.added = added.to(weights.embedding.dtype)  # (capacity, C)
        self.turns: tuple[Tensor, Tensor] | None = None
        if config.positions.kind == "rotary":
            cos, sin = (table[:, None] for table in config.rotary().tables(places))
            self.turns = widen_tables(cos, sin, self.layout)  # (capacity, 1, D)

    def read_context(
        self, context: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None, copies: int
    ) -> None:
        """Project the keys and values of cross-attention, once for all steps and copies."""
        S = context.shape[1]
        for layer in self.weights.stack.layers:
            assert layer.cross is not None
            kv = F.linear(context, layer.cross.kv.weight, layer.cross.kv.bias).repeat_interleave(
                copies, dim=0
            )
            kv = kv.unflatten(-1, (2, self.kv_heads, self.head_dim)).permute(2, 0, 3, 1, 4)
            self.contexts.append((kv[0], kv[1]))  # each B K S D
        if lengths is not None:
            visible = torch.arange(S) < lengths.repeat_interleave(copies)[:, None]
            self.context_mask = visible[:, None, None]
        elif S < _FEW:
            self.context_mask = context.new_zeros(1, S)

    def reorder(self, parents: Int[Tensor, " B"], length: int) -> None:
        """Row i becomes what row `parents[i]` was; only rows that change are copied."""
        rows = (parents != torch.arange(len(parents))).nonzero()[:, 0]
        if len(rows):
            self.memory[:, rows, :length] = self.memory[:, parents[rows], :length]

    def keep(self, rows: Int[Tensor, " n"], length: int) -> None:
        """Read on with these rows alone, all copies of some prompts, in ascending order."""
        for i, row in enumerate(rows.tolist()):  # upwards: no row is lost before it is copied
            if i != row:
                self.memory[:, i, :length] = self.memory[:, row, :length]
        self.memory = self.memory[:, : len(rows)]
        if self.missing is not None:
            self.missing = self.missing[rows]
        self.contexts = [(k[rows], v[rows]) for k, v in self.contexts]
        if self.context_mask is not None and len(self.context_mask) > 1:
            self.context_mask = self.context_mask[rows]

    def __call__(self, tokens: Int[Tensor, " B"], length: int) -> Float[Tensor, "B V"]:
        """The logits after one more token in each row; `length` tokens were read before."""
        weights = self.weights
        x = F.embedding(tokens, weights.embedding)
        if weights.embedding_scale != 1.0:
            x = x * weights.embedding_scale
        places = length if self.missing is None else length - self.missing
        if self.added is not None:
            x = x + self.added[places]
        if weights.stack.embedding_norm is not None:
            x = normalize(x, weights.stack.embedding_norm)
        turns = None if self.turns is None else (self.turns[0][places], self.turns[1][places])
        start = 0 if self.window is None else max(0, length + 1 - self.window)
        mask = self._mask_keys(x, start, length + 1)
        for i, layer in enumerate(weights.stack.layers):
            memory = self.memory[i]
            attention, cross, feed_forward = layer
            if self.is_pre_norm:
                h = normalize(x, attention.norm)
                x = x + self._attend(h, attention, memory, turns, mask, start, length)
                if cross is not None:
                    x = x + self._attend_context(normalize(x, cross.norm), cross, i)
                x = x + self._feed_forward(normalize(x, feed_forward.norm), feed_forward)
                continue
            y = self._attend(x, attention, memory, turns, mask, start, length)
            x = normalize(x + y, attention.norm)
            if cross is not None:
                x = normalize(x + self._attend_context(x, cross, i), cross.norm)
            x = normalize(x + self._feed_forward(x, feed_forward), feed_forward.norm)
        if weights.stack.final_norm is not None:
            x = normalize(x, weights.stack.final_norm)
        if weights.config.output.scale != 1.0:
            x = x * weights.config.output.scale
        logits = multiply(x, weights.head)
        if self.outputs is None:
            return logits
        return spread_logits(logits, self.outputs, weights.config.vocab_size)

    def _mask_keys(self, x: Tensor, start: int, stop: int) -> Tensor | None:
        if self.missing is not None:
            return (torch.arange(start, stop) >= self.missing[:, None])[:, None, None]
        return x.new_zeros(1, stop - start) if stop - start < _FEW else None

    def _attend(
        self,
        x: Tensor,
        weights: AttentionWeights,
        memory: Tensor,
        turns: tuple[Tensor, Tensor] | None,
        mask: Tensor | None,
        start: int,
        length: int,
    ) -> Tensor:
        heads = multiply(x, weights.qkv).unflatten(-1, (-1, self.head_dim))  # B H+2K D
        H, n = self.heads, self.heads + self.kv_heads
        if weights.q_norm is not None and weights.k_norm is not None:
            q, k = (
                normalize(heads[:, :H], weights.q_norm),
                normalize(heads[:, H:n], weights.k_norm),
            )
            heads = torch.cat((q, k, heads[:, n:]), dim=1)
        if turns is None:
            memory[:, length] = heads[:, H:].unflatten(1, (2, -1))
            q = heads[:, :H]
        else:
            turned = rotate(heads[:, :n], *turns, self.layout)
            memory[:, length, 0], memory[:, length, 1] = turned[:, H:], heads[:, n:]
            q = turned[:, :H]
        k, v = memory[:, start : length + 1].permute(2, 0, 3, 1, 4).unbind(0)  # each B K S D
        out = F.scaled_dot_product_attention(q.unsqueeze(2), k, v, attn_mask=mask, **self.options)
        return multiply(out.flatten(1), weights.out)

    def _attend_context(self, x: Tensor, weights: CrossWeights, layer: int) -> Tensor:
        q = multiply(x, weights.q).unflatten(-1, (-1, 1, self.head_dim))  # B H 1 D
        k, v = self.contexts[layer]
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.context_mask, **self.options)
        return multiply(out.flatten(1), weights.out)

    def _feed_forward(self, x: Tensor, weights: FeedForwardWeights) -> Tensor:
        hidden = multiply(x, weights.up)
        if self.is_gated:
            gate, up = hidden.chunk(2, dim=-1)
            hidden = self.activate(gate) * up
        else:
            hidden = self.activate(hidden)
        return multiply(hidden, weights.down)


def normalize(x: Float[Tensor, "... C"], norm: Norm) -> Float[Tensor, "... C"]:
    if norm.centered:
        return F.layer_norm(x, norm.weight.shape, norm.weight, norm.bias, norm.eps)
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    size = exact.square().mean(-1, keepdim=True)
    return norm.weight * (exact * torch.rsqrt(size + norm.eps)).to(x.dtype)


def widen_tables(cos: Tensor, sin: Tensor, layout: str) -> tuple[Tensor, Tensor]:
    """Tables for a head as it lies in memory: x · cos + partner(x) · sin is the rotation."""
    if layout == "half":
        return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
    return cos.repeat_interleave(2, dim=-1), torch.stack((-sin, sin), dim=-1).flatten(-2)


def rotate(x: Float[Tensor, "... H D"], cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Turn queries or keys by the angles of tables from `widen_tables`."""
    pairs = x.unflatten(-1, (2, -1) if layout == "half" else (-1, 2))
    partner = pairs.flip(-2 if layout == "half" else -1).flatten(-2)
    return (x * cos + partner * sin).to(x.dtype)
