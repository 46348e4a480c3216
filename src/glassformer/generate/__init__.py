"""From a model to text: what to do with logits, step after step.

On tokens: `sampling` turns one row of logits into one token and knows no model; `loop` runs a model
over its cache; `beam` keeps several texts side by side. On text: `writing` (decoders),
`translating` (encoder-decoders), `reading` (encoders). May import models and what lies below them;
never observe or train.
"""

from glassformer.generate.beam import Text, beam_search
from glassformer.generate.loop import Step, generate_tokens, stream_tokens
from glassformer.generate.reading import Guess, embed, fill
from glassformer.generate.sampling import Sampling, adjust, choose
from glassformer.generate.translating import Translation, addressed, translate, translations
from glassformer.generate.writing import generate, stream

__all__ = [
    "Guess",
    "Sampling",
    "Step",
    "Text",
    "Translation",
    "addressed",
    "adjust",
    "beam_search",
    "choose",
    "embed",
    "fill",
    "generate",
    "generate_tokens",
    "stream",
    "stream_tokens",
    "translate",
    "translations",
]
