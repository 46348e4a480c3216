"""What a trace says of its model, and what its weights say.

Roles of heads, comparison, bisection, lenses, attribution and reasons read a trace; sweeps patch a
model; circuits read its weights, and scores of heads its behaviour on repeated tokens.

Imports tracing and what lies below it.
"""

from glassformer.analysis.affine_lens import AffineLens
from glassformer.analysis.attribution import Attribution, Share, attribute
from glassformer.analysis.bisection import Bisection, bisect
from glassformer.analysis.comparison import Comparison, compare
from glassformer.analysis.head_removal import HeadEffects, head_effects
from glassformer.analysis.head_roles import Role, roles
from glassformer.analysis.head_scoring import HeadScores, head_scores
from glassformer.analysis.jacobian_lens import fit_jacobian_lens
from glassformer.analysis.lens import Lens, logit_lens
from glassformer.analysis.reasons import Reason, Why, why
from glassformer.analysis.sweep_result import Sweep
from glassformer.analysis.sweeps import sweep
from glassformer.analysis.tuned_lens import train_lens
from glassformer.analysis.verdicts import Verdict
from glassformer.analysis.weight_circuits import Circuits, circuits

__all__ = [
    "AffineLens",
    "Attribution",
    "Bisection",
    "Circuits",
    "Comparison",
    "HeadEffects",
    "HeadScores",
    "Lens",
    "Reason",
    "Role",
    "Share",
    "Sweep",
    "Verdict",
    "Why",
    "attribute",
    "bisect",
    "circuits",
    "compare",
    "fit_jacobian_lens",
    "head_effects",
    "head_scores",
    "logit_lens",
    "roles",
    "sweep",
    "train_lens",
    "why",
]
