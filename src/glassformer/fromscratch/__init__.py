"""Attention from scratch: one idea written in many ways, each tested to equal the others.

Every file is self-contained: it imports only torch (and jaxtyping, for the shapes in signatures),
so a few lines are repeated. Every form of attention returns `(out, weights)`, and every mask is
True where a query may attend.

    linear_map                 what a linear layer does to a sequence
    function                   attention as a function
    single_head                self-attention: parameters; linear layers
    masked_single_head         causal and padding masks
    additive_mask              the same, by adding −∞ to the scores
    multi_head_parameters      several heads, four matrices
    multi_head_linear          linear layers, dropout, mask, self and cross
    multi_head_einsum          the formulas, letter by letter
    multi_head_einops          named dimensions (needs einops; import the file itself)
    multi_head_causal_buffer   as in language models
    layer_norm, residual       the rest of a block
"""

from glassformer.fromscratch.additive_mask import (
    AdditiveMaskSelfAttention,
    causal_bias,
    causal_weights,
)
from glassformer.fromscratch.function import attention
from glassformer.fromscratch.layer_norm import LayerNorm
from glassformer.fromscratch.linear_map import map_each_token, map_flattened, map_whole
from glassformer.fromscratch.masked_single_head import (
    MaskedSingleHead,
    look_ahead_mask,
    padding_mask,
)
from glassformer.fromscratch.multi_head_causal_buffer import MultiHeadCausalBuffer
from glassformer.fromscratch.multi_head_einsum import MultiHeadEinsum
from glassformer.fromscratch.multi_head_linear import MultiHeadLinear
from glassformer.fromscratch.multi_head_parameters import MultiHeadParameters
from glassformer.fromscratch.residual import post_norm, pre_norm
from glassformer.fromscratch.single_head import SingleHeadLinear, SingleHeadParameters

__all__ = [
    "AdditiveMaskSelfAttention",
    "LayerNorm",
    "MaskedSingleHead",
    "MultiHeadCausalBuffer",
    "MultiHeadEinsum",
    "MultiHeadLinear",
    "MultiHeadParameters",
    "SingleHeadLinear",
    "SingleHeadParameters",
    "attention",
    "causal_bias",
    "causal_weights",
    "look_ahead_mask",
    "map_each_token",
    "map_flattened",
    "map_whole",
    "padding_mask",
    "post_norm",
    "pre_norm",
]
