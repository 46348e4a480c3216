"""From a model to text: sampling, greedy decoding and beam search.

On tokens: `sampling` turns a row of logits into a token and knows no model, `choice_rule` says
which tokens may follow; `loop` decodes with a session; `beam` is beam search. `drafts` guess tokens
that the model reads several at a time (`drafting`): on a CPU `speculative`, on a GPU
`captured_drafts`, `draft_state`, `draft_kernels`. Many prompts take turns (`queueing`,
`captured_queue`). `sessions` chooses how a model is run: by its modules, so that all can be
watched, or by its weights alone: on a CPU (`direct`) in C (`native_step`, `native_stack`,
`native_structures`, `native_matrices`, `thread_count`) or in PyTorch (`step`, `products`), for few
tokens alone where others are forbidden (`output_selection`), on a GPU as a CUDA graph
(`captured`, `cuda_state`, `cuda_step`, `cuda_layers`, `cuda_prompts`, `captured_prompts`,
`step_kernels`, `product_kernels`, `prefetch_kernels`; for beam search `beam_state`,
`beam_kernels`).

On text: `continuation` (decoders), `translation` (encoder-decoders; `source_text` is what they read
and may write, `copied_spans` what is copied), `encoder_tasks` (encoders). May import models and
what lies below them, never tracing or training.
"""

from glassformer.generation.beam import Candidate, Hypothesis, beam_search
from glassformer.generation.continuation import generate, stream
from glassformer.generation.drafts import Draft, LookupDraft, ModelDraft
from glassformer.generation.encoder_tasks import Guess, embed, fill
from glassformer.generation.loop import DecodingStep, generate_tokens, stream_tokens
from glassformer.generation.sampling import Sampling, adjust, choose
from glassformer.generation.source_text import add_language_tag, read_source
from glassformer.generation.translation import Translation, rank_translations, translate

__all__ = [
    "Candidate",
    "DecodingStep",
    "Draft",
    "Guess",
    "Hypothesis",
    "LookupDraft",
    "ModelDraft",
    "Sampling",
    "Translation",
    "add_language_tag",
    "adjust",
    "beam_search",
    "choose",
    "embed",
    "fill",
    "generate",
    "generate_tokens",
    "rank_translations",
    "read_source",
    "stream",
    "stream_tokens",
    "translate",
]
