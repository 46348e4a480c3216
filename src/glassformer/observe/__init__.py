"""Looking: what passes through attention is kept, and everything else derived where one looks.

Reading order: site (one place of attention), trace (all of them, and the texts); recording, guard
and patches (the frame of every recording: a model is never touched and never loses its answer);
record and own_run (our own models), watching, huggingface and foreign_run (those of transformers:
interface stands between them and their attention, call and opening say what passes, steps put it
together), torch_modules; parts and files (a trace as one file), roles (what a head does), compare
(two traces). Imports models and what lies below; never generate or train. Drawing is render's.
"""

from glassformer.observe.compare import Comparison, compare
from glassformer.observe.record import observe, record
from glassformer.observe.roles import Role, roles
from glassformer.observe.site import Site
from glassformer.observe.torch_modules import observe_torch
from glassformer.observe.trace import Run, Trace, Words
from glassformer.observe.watching import watch

__all__ = [
    "Comparison",
    "Role",
    "Run",
    "Site",
    "Trace",
    "Words",
    "compare",
    "observe",
    "observe_torch",
    "record",
    "roles",
    "watch",
]
