"""What a trace says of its model: roles of heads, comparison, lenses, attribution; what its parts
carry: sweeps; what its weights and its behaviour on repeated tokens say: circuits, scores of heads.

Imports tracing and what lies below it.
"""

from glassformer.analysis.attribution import Attribution, Share, attribute
from glassformer.analysis.comparison import Comparison, compare
from glassformer.analysis.head_roles import Role, roles
from glassformer.analysis.head_scoring import HeadScores, head_scores
from glassformer.analysis.lens import Lens, logit_lens
from glassformer.analysis.sweeps import Sweep, sweep
from glassformer.analysis.weight_circuits import Circuits, circuits

__all__ = [
    "Attribution",
    "Circuits",
    "Comparison",
    "HeadScores",
    "Lens",
    "Role",
    "Share",
    "Sweep",
    "attribute",
    "circuits",
    "compare",
    "head_scores",
    "logit_lens",
    "roles",
    "sweep",
]
