"""Attention as pure functions on tensors: (B, H, L, D) in, (B, H, L, E) out.

Reading order: reference (the definition), masks, biases, dispatch, repeated_calls and backends (the
fast paths; packed_texts has kernels for short texts), tiles and statistics (statistics without the
matrix), arithmetic (one cell step by step), positions (sinusoidal, rotary and its scalings), cache;
quantized (products with matrices of one byte a number); native_library and vectors.h (what is
written in C, compiled by glassformer.compilation).
Imports only errors, installation and compilation.
"""

from glassformer.functional.arithmetic import (
    CellArithmetic,
    RowArithmetic,
    cell_arithmetic,
    row_arithmetic,
)
from glassformer.functional.biases import ALiBi, Bias, ExplicitBias, RelativeBuckets
from glassformer.functional.cache import CrossCache, GrowingCache, StaticCache
from glassformer.functional.dispatch import Explanation, attention, explain
from glassformer.functional.masks import (
    Causal,
    Documents,
    Explicit,
    Mask,
    Padding,
    Prefix,
    Sequences,
    Window,
    from_torch_mha,
)
from glassformer.functional.positions.rotary import Rotary, rotate
from glassformer.functional.positions.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    NTKScaling,
    YaRNScaling,
)
from glassformer.functional.positions.sinusoidal import sinusoidal
from glassformer.functional.reference import attention_weights
from glassformer.functional.statistics.layout import Packed
from glassformer.functional.statistics.pooling import Map
from glassformer.functional.statistics.summary import (
    AttentionStatistics,
    Top,
    attention_lse,
    attention_statistics,
    attention_tile,
)
from glassformer.functional.tiles import memory_budget

__all__ = [
    "ALiBi",
    "AttentionStatistics",
    "BandedScaling",
    "Bias",
    "Causal",
    "CellArithmetic",
    "CrossCache",
    "Documents",
    "Explanation",
    "Explicit",
    "ExplicitBias",
    "GrowingCache",
    "LinearScaling",
    "Map",
    "Mask",
    "NTKScaling",
    "Packed",
    "Padding",
    "Prefix",
    "RelativeBuckets",
    "Rotary",
    "RowArithmetic",
    "Sequences",
    "StaticCache",
    "Top",
    "Window",
    "YaRNScaling",
    "attention",
    "attention_lse",
    "attention_statistics",
    "attention_tile",
    "attention_weights",
    "cell_arithmetic",
    "explain",
    "from_torch_mha",
    "memory_budget",
    "rotate",
    "row_arithmetic",
    "sinusoidal",
]
