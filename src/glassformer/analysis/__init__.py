"""What a trace says about its model: the roles of heads, and two traces compared.

Imports tracing and what lies below it.
"""

from glassformer.analysis.comparison import Comparison, compare
from glassformer.analysis.head_roles import Role, roles

__all__ = ["Comparison", "Role", "compare", "roles"]
