"""The modules that learn by these kernels. Each computes what its class says, in fewer passes.

Block            a norm goes beside the residual stream          residual_norm
SelfAttention    gradients of q, k and v are joined and summed   bias_sums
FeedForward      GELU, with the bias before it                   gelu, bias_sums
"""

from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.layers import Block, FeedForward, MixtureOfExperts, SelfAttention
from glassformer.layers.attention import attend, merge_heads
from glassformer.models.learning_forward import replace_while_learning
from glassformer.training.half_precision.bias_sums import (
    biased_gelu,
    can_sum_on_the_way,
    project_heads,
)
from glassformer.training.half_precision.gelu import half_precision_gelu
from glassformer.training.half_precision.residual_norm import can_go_beside, residual_norm


def replace_layers(model: nn.Module) -> None:
    """Let the layers of a model learn by these kernels, wherever they can."""
    for part in model.modules():
        forward = _FORWARDS.get(type(part))
        if forward is not None and "forward" not in vars(part):
            replace_while_learning(part, partial(forward, part))


def _compute_block(block: Block, x: Tensor, **options: Any) -> Tensor:
    if not block.training or block.norm_place != "pre":
        return Block.forward(block, x, **options)
    own = {name: options.get(name) for name in ("mask", "bias", "tables", "cache")}
    x, y = _norm_beside(block.attention_norm, x)
    x = _add(block, x, block.attention(y, **own))
    if block.has_cross:
        x, y = _norm_beside(block.cross_norm, x)
        mask, cache = options.get("context_mask"), options.get("context_cache")
        x = _add(block, x, block.cross(y, options["context"], mask=mask, cache=cache))
    if isinstance(block.feed_forward, MixtureOfExperts):  # it chooses experts in float32
        y = block.feed_forward_norm(x)
    else:
        x, y = _norm_beside(block.feed_forward_norm, x)
    return _add(block, x, block.feed_forward(y))


def _add(block: Block, x: Tensor, y: Tensor) -> Tensor:
    return x + F.dropout(y, block.dropout, block.training)


def _norm_beside(norm: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    if can_go_beside(norm, x):
        return residual_norm(x, norm.weight, norm.bias, norm.eps)
    return x, norm(x)


def _compute_attention(layer: SelfAttention, x: Tensor, **options: Any) -> Tensor:
    is_changed = layer.has_head_norm or options.get("tables") is not None  # before it is scored
    is_plain = layer.training and not is_changed and options.get("cache") is None
    if not is_plain or not can_sum_on_the_way(layer.qkv, x):
        return SelfAttention.forward(layer, x, **options)
    counts = layer.n_heads, layer.n_kv_heads, layer.n_kv_heads
    parts = project_heads(x, layer.qkv.weight, layer.qkv.bias, counts)
    q, k, v = (part.transpose(1, 2) for part in parts)
    return layer.out(merge_heads(attend(layer, q, k, v, options.get("mask"), options.get("bias"))))


def _compute_feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    if not layer.training or layer.gated or layer.activation != "gelu":
        return FeedForward.forward(layer, x)
    if can_sum_on_the_way(layer.up, x):
        hidden = biased_gelu(F.linear(x, layer.up.weight), layer.up.bias)
    else:
        hidden = half_precision_gelu(layer.up(x))
    return layer.down(F.dropout(hidden, layer.dropout, layer.training))


_FORWARDS: dict[type[nn.Module], Any] = {
    Block: _compute_block,
    SelfAttention: _compute_attention,
    FeedForward: _compute_feed_forward,
}
