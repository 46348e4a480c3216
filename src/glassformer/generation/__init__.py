"""From a model to text: what to do with logits, step after step.

On tokens: `sampling` turns one row of logits into one token and knows no model; `loop` runs a model
over its cache; `beam` keeps several texts side by side. On text: `writing` (decoders),
`translating` (encoder-decoders), `reading` (encoders). May import models and what lies below them;
never observe or train.
"""

from glassformer.generation.beam import Text, beam_search
from glassformer.generation.continuation import generate, stream
from glassformer.generation.encoder_tasks import Guess, embed, fill
from glassformer.generation.loop import Step, generate_tokens, stream_tokens
from glassformer.generation.sampling import Sampling, adjust, choose
from glassformer.generation.translation import Translation, addressed, translate, translations

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
