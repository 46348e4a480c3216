"""glassformer: Transformers you can see through."""

from glassformer.analysis import compare, roles
from glassformer.errors import GlassformerError, RecordingWarning
from glassformer.functional import (
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
from glassformer.generation import Sampling, embed, fill, generate, stream, translate
from glassformer.models import Config, build
from glassformer.models.checkpoints import load, save
from glassformer.tracing import Trace, record, watch
from glassformer.tracing.views import Views, draw_with
from glassformer.training import Recipe, train

__version__ = "0.1.0"


def _views() -> Views:
    """What draws a trace; imported when something is drawn, since it needs more than torch."""
    from glassformer.render import views

    return views


draw_with(_views)

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
    "Recipe",
    "RecordingWarning",
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
    "record",
    "roles",
    "row_arithmetic",
    "save",
    "stream",
    "train",
    "translate",
    "watch",
]
