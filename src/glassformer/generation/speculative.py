"""Speculative decoding: a draft guesses the next tokens, and the model reads them in one pass.

    text ─ draft guesses k tokens ─ one pass over all k ─ the model's own choice after each
      ▲                                                                 │
      └──── the tokens up to the first guess that differs from it ◄─────┘

A decode step waits for the weights to arrive from memory, so reading a few tokens takes hardly
longer than reading one. Every token is chosen by the model itself, from logits that are the same
bit for bit as without a draft and, when sampling, with the same random numbers: a draft changes
how long it takes, never the text. (Leviathan et al. 2023 and Chen et al. 2023 accept guesses with
a probability instead, which keeps the distribution of texts rather than the text.)
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from glassformer.generation.choice_rule import Rule
from glassformer.generation.direct import DirectSession
from glassformer.generation.drafts import Draft
from glassformer.models import Decoder

_MOST_GUESSES = 11  # with the token before them, two groups of rows in C

Sampler = Callable[[Float[Tensor, "1 V"], Sequence[int]], int]  # of logits and the text so far


class DraftedPass(NamedTuple):
    """What a pass of the model has written, and what was guessed before it.

    The tokens are the guesses that held, and one that the model chose itself.
    """

    tokens: list[int]
    guesses: list[int]


def stream_drafted(
    session: DirectSession,
    draft: Draft,
    rule: Rule,
    sampler: Sampler | None,
    *,
    max_new_tokens: int,
) -> Iterator[DraftedPass]:
    """The tokens of each pass until a stop token, which is among them.

    Without a sampler, the most probable ones.
    """
    text: list[int] = session.prompt[0].tolist()
    most = len(text) + max_new_tokens
    assert isinstance(session.model, Decoder)
    draft.begin(session.model, rule, most)
    written = _write(session, [], text, rule, sampler)
    guesses: list[int] = []
    while True:
        ends = (i for i, token in enumerate(written, start=1) if token in rule.stops)
        del written[next(ends, most) :]
        text += written
        draft.learn(len(guesses), len(written) - 1)
        yield DraftedPass(written, guesses)
        if text[-1] in rule.stops or len(text) == most:
            return
        room = min(_MOST_GUESSES, most - len(text) - 1)
        known = range(session.model.config.vocab_size)
        guesses = [*takewhile(known.__contains__, draft.guess(text, room)[:room])]
        written = _write(session, guesses, text, rule, sampler)


def _write(
    session: DirectSession,
    guesses: Sequence[int],
    text: Sequence[int],
    rule: Rule,
    sampler: Sampler | None,
) -> list[int]:
    """Read the last token and the guesses: the guesses that hold, and the token after them."""
    is_prompt, before, tokens = session.length == 0, len(text) - 1, [text[-1], *guesses]
    if sampler is None:
        return session.write(1, rule)[0] if is_prompt else session.write_ahead(before, tokens, rule)
    logits = session.next_logits() if is_prompt else session.read_ahead(before, tokens)
    written: list[int] = []
    for row, guess in zip(logits.split(1), [*guesses, None], strict=True):
        written.append(sampler(row, [*text, *written]))
        if written[-1] != guess:
            break
    return written
