"""Two runs of one model that say different things: which operand differs first, and how.

Reading order: aligned_runs (what of two runs can be compared), measures (how far apart, and what
rounding does), scoring and stages (the operands in the order of the computation), kinds and
rotations (hypotheses about a difference), kernels, linear_maps, token_shift (those that need more
than the operand itself), compared_cell, changed_token, bisection (the whole), sentences.
"""

from glassformer.analysis.bisection.bisection import Bisection, LayerDifference, Origin, bisect
from glassformer.analysis.bisection.changed_token import ChangedToken
from glassformer.analysis.bisection.compared_cell import ComparedCell
from glassformer.analysis.bisection.kinds import Kind

__all__ = [
    "Bisection",
    "ChangedToken",
    "ComparedCell",
    "Kind",
    "LayerDifference",
    "Origin",
    "bisect",
]
