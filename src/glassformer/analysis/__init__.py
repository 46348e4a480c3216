"""What a trace says of its model: roles of heads, comparison, lenses, attribution; what its parts
carry: sweeps; what its weights and its behaviour on repeated tokens say: circuits, scores of heads.

Imports tracing and what lies below it.
"""

from glassformer.analysis.affine_lens import AffineLens
from glassformer.analysis.attribution import Attribution, Share, attribute
from glassformer.analysis.comparison import Comparison, compare
from glassformer.analysis.head_roles import Role, roles
from glassformer.analysis.head_scoring import HeadScores, head_scores
from glassformer.analysis.jacobian_lens import fit_jacobian_lens
from glassformer.analysis.lens import Lens, logit_lens
from glassformer.analysis.sweeps import Sweep, sweep
from glassformer.analysis.tuned_lens import train_lens
from glassformer.analysis.weight_circuits import Circuits, circuits

__all__ = [
    "AffineLens",
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
    "fit_jacobian_lens",
    "head_scores",
    "logit_lens",
    "roles",
    "sweep",
    "train_lens",
]
