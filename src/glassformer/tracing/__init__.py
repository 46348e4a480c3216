"""Recording what passes through attention: operands are kept, everything else is derived from them.

Reading order: site (one place of attention), trace (all of them, and the texts); recorder, guard
and patches (the frame of every recording: a model is never modified and never loses its answer);
sources/ (our own models, those of transformers, modules of PyTorch); operand_store, mask_rules,
mask_codec and files (a trace as one file). Imports models and what lies below; never generation or
training. Drawing belongs to render, judging to analysis.
"""

from glassformer.tracing.site import Site
from glassformer.tracing.sources.ours import record
from glassformer.tracing.trace import Run, Trace, Words
from glassformer.tracing.watching import watch

__all__ = [
    "Run",
    "Site",
    "Trace",
    "Words",
    "record",
    "watch",
]
