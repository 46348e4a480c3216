"""glassformer: Transformers you can see through.

`gf.attention`, `gf.generate` and `gf.observe` are functions; the folders of the same names are
reached by `from glassformer.attention import …`.
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
from glassformer.generate import Sampling, embed, fill, generate, stream, translate
from glassformer.models import Config, build
from glassformer.models.checkpoints import load, save
from glassformer.observe import Trace, compare, observe, observe_torch, record, roles, watch

__version__ = "0.1.0"

__all__ = [
    "ALiBi",
    "Bias",
    "Causal",
    "Config",
    "Documents",
    "Explicit",
    "ExplicitBias",
    "GlassformerError",
    "Mask",
    "Padding",
    "Prefix",
    "RelativeBuckets",
    "Sampling",
    "Trace",
    "Window",
    "attention",
    "attention_lse",
    "attention_statistics",
    "attention_tile",
    "attention_weights",
    "build",
    "cell_arithmetic",
    "compare",
    "embed",
    "explain",
    "fill",
    "from_torch_mha",
    "generate",
    "load",
    "memory_budget",
    "observe",
    "observe_torch",
    "record",
    "roles",
    "row_arithmetic",
    "save",
    "stream",
    "translate",
    "watch",
]
