"""What a trace says about its model: roles of heads, two traces compared, lenses, attribution.

Imports tracing and what lies below it.
"""

from glassformer.analysis.attribution import Attribution, Share, attribute
from glassformer.analysis.comparison import Comparison, compare
from glassformer.analysis.head_roles import Role, roles
from glassformer.analysis.lens import Lens, logit_lens

__all__ = [
    "Attribution",
    "Comparison",
    "Lens",
    "Role",
    "Share",
    "attribute",
    "compare",
    "logit_lens",
    "roles",
]
