"""Beam search by graphs, in which prompts whose search has ended make the batch smaller.

    prompts   1,000 ─────────────┐
                256              └───────────┐         a graph has a fixed batch, so those that
                 64                          └─────    are left go on in another engine

A step of a thousand prompts takes several times as long as one of a few, and most texts end long
before the longest.
"""

from collections import deque
from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.generation.beam_state import BeamState, FoundText
from glassformer.generation.captured import CapturedSession, borrow_engine, fetch, return_engine
from glassformer.generation.program_shapes import power_above

_AHEAD = 4  # steps that the GPU may be behind the host
_SHRINK = 4  # at most one of so many prompts is left when they move: a new engine takes a while
_FEW = 64  # rows: a step of fewer takes no less time


def search_captured(
    session: CapturedSession,
    *,
    max_new_tokens: int,
    stops: Sequence[int],
    never: Sequence[int],
    forbidden: Bool[Tensor, "P V"] | None,
) -> list[list[FoundText]]:
    """The texts that beam search finds for each prompt, with a beam for each copy."""
    state = session.engine.find_search(session.copies, stops)
    session.begin(never, forbidden, None)
    state.begin()
    start = session.fresh.shape[1]
    columns = range(start, start)
    found: list[list[FoundText]] = [[] for _ in session.prompt]
    prompts = [*range(len(found))]  # of each row of the state
    while True:
        columns, live = _advance(session, state, columns, start + max_new_tokens, len(prompts))
        is_over = not live or len(columns) == max_new_tokens
        over = {*range(len(prompts))}.difference([] if is_over else live)
        texts = state.read_texts(columns)
        for row in over:
            found[prompts[row]] = texts[row]
        if is_over:
            return found
        # The rest of a power of 2 is filled up with a prompt whose search is over.
        rows = live + live[:1] * (power_above(len(live)) - len(live))
        state = _narrow(session, state, rows, columns)
        state.end(len(live))
        prompts = [prompts[row] for row in rows]
        session.step.exclude(never, None if forbidden is None else forbidden[prompts])
        prompts = prompts[: len(live)]


def _advance(
    session: CapturedSession, state: BeamState, columns: range, stop: int, n_prompts: int
) -> tuple[range, list[int]]:
    """Search on until few of these prompts are live; all columns so far, and the live ones."""
    size = len(state.scores)
    few = int(size / _SHRINK) if size * state.beams > _FEW else 0
    pending: deque[tuple[int, torch.cuda.Event]] = deque()
    n = columns.stop
    live = [*range(n_prompts)]
    while live and (n < stop or pending):
        while n < stop and len(pending) < _AHEAD:
            session.engine.replay(state)
            event = fetch(state.live, session.engine.on_host, range(n, n + 1))
            pending.append((n, event))
            n += 1
        column, event = pending.popleft()
        event.synchronize()
        seen = session.engine.on_host[column, :n_prompts]
        if bool((seen < 0).any()):
            raise ConfigError(
                "logits must be numbers; got NaN. Look for an overflow or a division by zero in "
                "the model."
            )
        live = seen.nonzero()[:, 0].tolist()
        if len(live) <= few:
            stop = n  # what is on its way is the last
    return range(columns.start, n), live


def _narrow(
    session: CapturedSession, state: BeamState, prompts: Sequence[int], columns: range
) -> BeamState:
    """Give these prompts of a search to an engine for as many, and the session this engine."""
    key = session.engine.key._replace(batch=len(prompts) * state.beams)
    engine = borrow_engine(session.model, key)
    narrow = engine.find_search(state.beams, state.stop_tokens)
    narrow.take_prompts(state, torch.tensor([*prompts], device=key.device), columns)
    return_engine(session.model, session.engine)
    session.engine, session.step = engine, engine.step
    return narrow
