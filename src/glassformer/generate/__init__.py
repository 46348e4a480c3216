"""From a model to text: what to do with logits, step after step.

`sampling` turns one row of logits into one token and knows no model; `loop` runs a model over its
cache; `beam` keeps several texts side by side. May import models and what lies below them; never
observe or train.
"""

from glassformer.generate.beam import Text, beam_search
from glassformer.generate.loop import Step, generate, stream
from glassformer.generate.sampling import Sampling, adjust, choose

__all__ = ["Sampling", "Step", "Text", "adjust", "beam_search", "choose", "generate", "stream"]
