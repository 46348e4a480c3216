"""Recording attention: the operands are kept, everything else is derived from them.

Reading order: site (one place of attention), trace (all of them, and the texts); context (`watch`),
recorder and recorded_run (the one bookkeeping of runs, steps and beams), sources/ (our own models,
those of transformers, modules of PyTorch); stream and its neighbours (the residual stream);
interventions/ and rerun (`change`, `rerun`: a model that computes something else); guard and
patches (a model is never modified and never loses its answer); operand_store, mask_rules,
mask_codec, tensor_file and files (a trace as one file). Imports models and what lies below; never
generation or training. Drawing belongs to render, judging to analysis.
"""

from glassformer.tracing.context import change, watch
from glassformer.tracing.interventions import (
    Ablate,
    Freeze,
    Knockout,
    Patch,
    Scale,
    Skip,
    Steer,
    Swap,
)
from glassformer.tracing.interventions.files import load_changes, save_changes
from glassformer.tracing.reruns import rerun
from glassformer.tracing.site import Site
from glassformer.tracing.site_assembly import record
from glassformer.tracing.trace import Run, Trace, TracedText

__all__ = [
    "Ablate",
    "Freeze",
    "Knockout",
    "Patch",
    "Run",
    "Scale",
    "Site",
    "Skip",
    "Steer",
    "Swap",
    "Trace",
    "TracedText",
    "change",
    "load_changes",
    "record",
    "rerun",
    "save_changes",
    "watch",
]
