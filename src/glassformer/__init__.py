"""glassformer: Transformers you can see through.

`gf.attention` is the function; the folder of the same name is reached by
`from glassformer.attention import …`.
"""

from glassformer.attention import (
    ALiBi,
    Bias,
    Causal,
    Documents,
    Explicit,
    ExplicitBias,
    Mask,
    Padding,
    Prefix,
    RelativeBuckets,
    Window,
    attention,
    attention_lse,
    attention_statistics,
    attention_tile,
    attention_weights,
    cell_arithmetic,
    explain,
    from_torch_mha,
    memory_budget,
    row_arithmetic,
)
from glassformer.errors import GlassformerError

__version__ = "0.1.0"

__all__ = [
    "ALiBi",
    "Bias",
    "Causal",
    "Documents",
    "Explicit",
    "ExplicitBias",
    "GlassformerError",
    "Mask",
    "Padding",
    "Prefix",
    "RelativeBuckets",
    "Window",
    "attention",
    "attention_lse",
    "attention_statistics",
    "attention_tile",
    "attention_weights",
    "cell_arithmetic",
    "explain",
    "from_torch_mha",
    "memory_budget",
    "row_arithmetic",
]
