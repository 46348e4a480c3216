"""Continuous batching on a GPU: rows of a captured batch whose texts have ended get other prompts.

Every row has a length of its own, so a prompt that enters begins at the first column of its row
(compare `queueing`, where rows have their columns in common). The host launches a chunk of steps
while it reads what the chunk before has written; a row that has ended meanwhile writes a few tokens
that nobody reads.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import cycle, zip_longest
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.generation.captured import CapturedSession, check_chosen, fetch
from glassformer.generation.cuda_prompts import read_prompts
from glassformer.generation.prompts import pad_left
from glassformer.generation.queueing import OnToken
from glassformer.generation.sampling import Sampling
from glassformer.models import Decoder

_CHUNK = 8  # steps between two looks at what was written
_AHEAD = 2  # chunks that the GPU may be behind the host


class _Chunk(NamedTuple):
    texts: list[int | None]  # of each row, when it was launched
    tokens: Int[Tensor, "n B"]  # on the host, when the event has happened
    event: torch.cuda.Event


class QueuedCapturedSession(CapturedSession):
    """Decoding by graphs in which rows are given to other prompts."""

    def admit(self, rows: Sequence[int], prompts: Sequence[Sequence[int]]) -> None:
        """Begin these prompts, none of them longer than the first ones, in these rows."""
        step, device = self.step, self.prompt.device
        tokens, missing = pad_left(prompts, device)
        L, places = tokens.shape[1], torch.tensor([*rows], device=device)
        if L > 1:
            read_prompts(step, tokens[:, :-1], missing, rows=places)
        step.tokens[places] = tokens[:, -1]
        step.lengths[places] = L - 1
        step.missing[places] = missing.to(step.missing.dtype)
        self.engine.seen[:L, places] = tokens.T

    def rest(self, rows: Sequence[int]) -> None:
        """Let these rows write what nobody reads, from the beginning of their memory on."""
        places = torch.tensor([*rows], device=self.prompt.device)
        for each in (self.step.lengths, self.step.missing):
            each[places] = 0

    def launch(self, sampling: Sampling, on_host: Int[Tensor, "n B"]) -> torch.cuda.Event:
        """Begin as many steps as there is room for their tokens on the host."""
        n = len(on_host)
        for _ in range(n):
            self.engine.replay(sampling)
        steps = torch.arange(1 - n, 1, device=self.prompt.device)[:, None]
        written = self.engine.written.gather(0, self.step.lengths + steps)
        return fetch(written, on_host, range(n))


def write_queued_on_gpu(
    model: Decoder,
    prompts: Sequence[Sequence[int]],
    *,
    slots: int,
    max_new_tokens: int,
    sampling: Sampling,
    never: Sequence[int],
    seed: int | None,
    on_token: OnToken,
) -> None:
    """Continue all prompts, `slots` at a time.

    `on_token` is called with each token as it is read, stop tokens included.
    """
    # The longest come first: what enters later has room.
    waiting = deque(sorted(range(len(prompts)), key=lambda i: len(prompts[i]), reverse=True))
    texts: list[int | None] = [waiting.popleft() for _ in range(slots)]  # of each row
    left = [max_new_tokens] * len(prompts)  # tokens that a text may still have
    session = QueuedCapturedSession(
        model,
        [prompts[i] for i in texts if i is not None],
        source=None,
        max_new_tokens=max_new_tokens + (_AHEAD + 2) * _CHUNK,  # until an end is noticed
    )
    session.begin(never, None, seed)
    buffers = _make_buffers(session, slots)
    pending: deque[_Chunk] = deque()
    try:
        while any(text is not None for text in texts):
            while len(pending) < _AHEAD:
                on_host = next(buffers)
                pending.append(_Chunk([*texts], on_host, session.launch(sampling, on_host)))
            chunk = pending.popleft()
            chunk.event.synchronize()
            for tokens in chunk.tokens.tolist():
                for text, token in zip(chunk.texts, tokens, strict=True):
                    if text is not None and left[text]:
                        check_chosen([token])
                        left[text] = 0 if on_token(text, token) else left[text] - 1
            over = [row for row, text in enumerate(texts) if text is not None and not left[text]]
            new = [waiting.popleft() for _ in range(min(len(over), len(waiting)))]
            if new:
                session.admit(over[: len(new)], [prompts[text] for text in new])
            if len(over) > len(new):
                session.rest(over[len(new) :])
            for row, text in zip_longest(over, new):
                texts[row] = text
    finally:
        session.close()


def _make_buffers(session: CapturedSession, slots: int) -> Iterator[Tensor]:
    """Room on the host for the tokens of chunks, used in turns."""
    is_pinned = session.prompt.device.type == "cuda"
    shape = (_AHEAD + 1, _CHUNK, slots)
    return cycle(torch.zeros(shape, dtype=torch.int32, pin_memory=is_pinned))
