"""Looking: what passes through attention is kept, and everything else derived where one looks.

Reading order: site (one place of attention), trace (all of them, and the texts), record (hooks on
our own models), parts and files (a trace as one file). Imports models and what lies below; never
generate or train. Drawing is render's.
"""

from glassformer.observe.record import observe, record
from glassformer.observe.site import Site
from glassformer.observe.trace import Run, Trace, Words

__all__ = ["Run", "Site", "Trace", "Words", "observe", "record"]
