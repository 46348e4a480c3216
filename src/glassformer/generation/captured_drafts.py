"""Speculative decoding on a GPU: which passes are launched, and what they wrote.

Guesses, the choice after each of them and the text stay on the GPU (draft_state.py). The host
launches a few passes ahead and reads later what they wrote. A pass with guesses takes longer than
one without, so the latter are launched while guesses do not hold; they, too, tell whether the first
guess would have held.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.generation.captured import CapturedSession, check_chosen, fetch
from glassformer.generation.cuda_step import refusal as cuda_refusal
from glassformer.generation.draft_state import N_GUESSES, WIDE
from glassformer.generation.drafts import Draft, LookupDraft, ModelDraft, Pace
from glassformer.models.decoder_weights import DecoderWeights, refusal

_CHUNK = 4  # passes between two looks at what was written
_WIDE_COST = 1.7  # of a pass with guesses, in passes without


class _Launched(NamedTuple):
    lines: range  # of the log
    n_rows: int
    event: torch.cuda.Event


def draft_refusal(session: CapturedSession, draft: Draft) -> str | None:
    """Why this draft cannot guess on a GPU; None if it can."""
    if len(session.prompt) > 1 or session.context is not None or not session.step.is_few:
        return "the model itself does not read several tokens of one text alike"
    if isinstance(draft, LookupDraft):
        return None
    if not isinstance(draft, ModelDraft):
        return "only a model, or a lookup in the text, guesses without the host"
    weight = draft.model.embedding.weight
    if weight.device != session.prompt.device:
        return "it must be on the model's device"
    return refusal(draft.model) or cuda_refusal(draft.model.config, weight.dtype)


def stream_drafted_on_gpu(
    session: CapturedSession,
    draft: Draft,
    *,
    max_new_tokens: int,
    never: Sequence[int],
    forbidden: Bool[Tensor, "1 V"] | None,
) -> Iterator[int]:
    """The most probable tokens, also past a stop token; `draft` is one that is not refused."""
    model = draft.model if isinstance(draft, ModelDraft) else None
    state = session.engine.find_drafting(None if model is None else DecoderWeights.of(model))
    session.begin(never, forbidden, None)
    most = session.prompt.shape[1] + max_new_tokens
    state.begin(session.prompt, most, never, forbidden)
    pace = Pace(held=0.3 if model is None else 0.7)
    pending: deque[_Launched] = deque()
    n_written = n_launched = 0
    size = 1
    while n_written < max_new_tokens:
        while len(pending) < 2:
            per_pass = _count_expected(pace, WIDE)
            n_rows = WIDE if per_pass > _WIDE_COST else 1
            coming = sum(len(each.lines) * _count_expected(pace, each.n_rows) for each in pending)
            wanted = (max_new_tokens - n_written - coming) / _count_expected(pace, n_rows)
            n = min(size, math.ceil(wanted), max_new_tokens - n_launched)
            if n < 1:  # what was launched is probably enough
                break
            for _ in range(n):
                session.engine.replay(state.passes[n_rows])
            lines = range(n_launched, n_launched + n)
            pending.append(_Launched(lines, n_rows, fetch(state.log, state.on_host, lines)))
            n_launched += n
            size = min(2 * size, _CHUNK)
        lines, n_rows, event = pending.popleft()
        event.synchronize()
        for count, n_held, *tokens in state.on_host[lines.start : lines.stop].tolist():
            if count == 0:  # the text was complete before
                break
            n_guesses = N_GUESSES if n_rows > 1 else 0
            draft.count_pass(n_guesses, count - 1)
            pace.learn(max(n_guesses, 1), n_held)
            n_written += count
            for token in tokens[:count]:
                check_chosen([token])
                yield token


def _count_expected(pace: Pace, n_rows: int) -> float:
    """How many tokens a pass writes on average."""
    return sum(pace.chance**i for i in range(n_rows))
