"""Writing one text with a draft, by the way that its session allows: in C, or by CUDA graphs."""

import warnings
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.generation.captured import CapturedSession
from glassformer.generation.captured_drafts import draft_refusal, stream_drafted_on_gpu
from glassformer.generation.choice_rule import Rule
from glassformer.generation.drafts import Draft, LookupDraft
from glassformer.generation.sampling import Sampling, adjust, choose, exclude_tokens
from glassformer.generation.sessions import Session, can_drop
from glassformer.generation.speculative import Sampler, stream_drafted


def stream_by_draft(
    session: Session,
    draft: Draft,
    *,
    max_new_tokens: int,
    sampling: Sampling,
    rule: Rule,
    seed: int | None,
) -> Iterator[int] | None:
    """The tokens of the text, at least up to a stop token; None where the draft cannot be used."""
    if can_drop(session) and session.reads_ahead:
        sampler = None if sampling.is_argmax else _make_sampler(sampling, rule, seed)
        passes = stream_drafted(session, draft, rule, sampler, max_new_tokens=max_new_tokens)
        return (token for each in passes for token in each.tokens)
    reason = (
        "the model must be read in C (float32 or int8 weights on a CPU) or by CUDA graphs (at "
        "least 8 tokens on a GPU), and nobody may watch it"
    )
    if isinstance(session, CapturedSession):
        reason = draft_refusal(session, draft)
        if not sampling.is_argmax:
            reason = "on a GPU it guesses only for greedy decoding without a repetition penalty"
        if reason is None:
            return stream_drafted_on_gpu(
                session,
                draft,
                max_new_tokens=max_new_tokens,
                never=rule.never,
                forbidden=rule.forbidden,
            )
    if not isinstance(draft, LookupDraft):
        warnings.warn(f"The draft is not used: {reason}.", UserWarning, stacklevel=2)
    return None


def _make_sampler(sampling: Sampling, rule: Rule, seed: int | None) -> Sampler:
    """What is done with the logits of a prompt without a draft, on a CPU."""
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    forbidden: Bool[Tensor, "1 V"] | None = rule.forbidden

    def choose_next(logits: Float[Tensor, "1 V"], text: Sequence[int]) -> int:
        allowed = exclude_tokens(logits, rule.never, forbidden)
        seen = torch.tensor([[*text]])
        return int(choose(adjust(allowed, sampling, seen), sampling, generator))

    return choose_next
