"""From a model to text: what to do with logits, step after step.

`sampling` turns one row of logits into one token and knows no model; `loop` runs a model over its
cache. May import models and what lies below them; never observe or train.
"""

from glassformer.generate.loop import Step, generate, stream
from glassformer.generate.sampling import Sampling, adjust, choose

__all__ = ["Sampling", "Step", "adjust", "choose", "generate", "stream"]
