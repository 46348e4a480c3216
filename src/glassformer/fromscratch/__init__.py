"""Attention in its plainest forms: one idea written many ways, each proved equal to the others.

Open any file: it stands alone and imports torch (and jaxtyping, for the shapes in the signatures)
and nothing else, so a few lines repeat from one to the next. Every form of attention returns
`(out, weights)`, and every mask is True where a query may attend.

    linear_map                 what a linear layer does to a sequence
    function                   attention as a function
    single_head                self-attention: parameters; linear layers
    masked_single_head         nobody looks ahead, nobody looks at padding
    additive_mask              the same by adding −∞
    multi_head_parameters      several heads, four matrices
    multi_head_linear          linear layers, dropout, mask, self and cross
    multi_head_einsum          the formulas, letter by letter
    multi_head_einops          names for every change of shape (needs einops: import it by its file)
    multi_head_causal_buffer   as language models carry it
    layer_norm, residual       what stands around attention in a block
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
