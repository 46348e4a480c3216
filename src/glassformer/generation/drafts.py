"""Drafts: what guesses the next tokens for speculative decoding (`speculative`).

`LookupDraft` looks the last tokens up in the text so far; `ModelDraft` asks a smaller model. Each
counts how its guesses did, and guesses as many tokens as that makes worth reading.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import takewhile

from torch.nn import Module

from glassformer.errors import ConfigError
from glassformer.generation.choice_rule import Rule
from glassformer.generation.direct import DirectSession
from glassformer.generation.native_step import MOST_ROWS, native_refusal
from glassformer.generation.prompts import GenerativeModel
from glassformer.models import Decoder

AUTO, LOOKUP = "auto", "lookup"
_LONGEST, _SHORTEST = 4, 2  # n-grams that are looked up
_ROW = 0.1  # what one more row adds to a pass, as a share of a pass with one row
_MEMORY = 0.8  # how much of the experience remains with each pass


class Pace:
    """How many tokens are worth guessing, by how many of the earlier guesses held.

    If a guess holds with probability p, a pass with k guesses writes (1 − pᵏ⁺¹) / (1 − p) tokens
    on average; it costs as much as a pass with k + 1 rows, and the guessing.

    >>> pace = Pace()
    >>> pace.count(8)
    1
    >>> for _ in range(9): pace.learn(8, 8)
    >>> pace.count(8)
    8
    >>> for _ in range(30): pace.learn(8, 0)
    >>> pace.count(8)
    0
    """

    def __init__(self, *, price: float = 0.0, held: float = 0.3) -> None:
        self.price = price + _ROW  # of a guess, as a share of a pass
        self.expected = held  # before there is experience
        self.held = self.failed = 0.0

    @property
    def chance(self) -> float:
        """How likely a guess holds if those before it do."""
        return (self.held + self.expected) / (self.held + self.failed + 1)

    def count(self, most: int) -> int:
        """How many guesses, up to `most`, make a token cheapest."""
        p = self.chance
        gains = [sum(p**i for i in range(k + 1)) / (1 + self.price * k) for k in range(most + 1)]
        n = max(range(most + 1), key=gains.__getitem__)
        if n == 0:  # failures are forgotten, so that a guess is tried again after a while
            self.failed *= _MEMORY**0.25
        return n

    def learn(self, n_guesses: int, n_held: int) -> None:
        """How many guesses of a pass held."""
        if n_guesses:
            self.held = _MEMORY * self.held + n_held
            self.failed = _MEMORY * self.failed + (n_held < n_guesses)


class Draft(ABC):
    """Guesses how a text goes on, and counts how many guesses held.

    A draft of your own has `guess`, and perhaps `begin`; the text does not depend on it.
    """

    def __init__(self) -> None:
        self.n_passes = self.n_guesses = self.n_held = 0

    def begin(self, model: Decoder, rule: Rule, capacity: int) -> None:  # noqa: ARG002
        """A text of up to `capacity` tokens begins, the prompt included, written by this model."""
        self.forget()

    def forget(self) -> None:  # noqa: B027  (most drafts know nothing that they would forget)
        """What was known of the text before does not count any more."""

    @abstractmethod
    def guess(self, text: Sequence[int], most: int) -> list[int]:
        """Up to `most` tokens after the text so far."""

    def learn(self, n_guesses: int, n_held: int) -> None:
        """A pass is over, before which there were so many guesses."""
        self.count_pass(n_guesses, n_held)

    def count_pass(self, n_guesses: int, n_held: int) -> None:
        """Add a pass to the statistics."""
        self.n_passes += 1
        self.n_guesses += n_guesses
        self.n_held += n_held


class LookupDraft(Draft):
    """Guesses that the text goes on as it did after the same few tokens before.

    >>> draft = LookupDraft()
    >>> draft.guess([1, 2, 3, 4, 1, 2], 2)
    [3]
    >>> draft.guess([1, 2, 3, 4, 5, 6], 2)
    []
    """

    def __init__(self) -> None:
        super().__init__()
        self.forget()

    def forget(self) -> None:
        self._ends: dict[tuple[int, ...], int] = {}  # where an n-gram last ended
        self._n_known = 0  # tokens up to which n-grams are known
        self._paces = [Pace() for _ in range(_LONGEST + 1)]
        self._found = 0  # how long the n-gram of the last guesses was

    def guess(self, text: Sequence[int], most: int) -> list[int]:
        for end in range(self._n_known + 1, len(text)):  # the last n-grams are looked up
            for n in range(_SHORTEST, min(_LONGEST, end) + 1):
                self._ends[tuple(text[end - n : end])] = end
        self._n_known = max(self._n_known, len(text) - 1)
        for n in range(min(_LONGEST, len(text)), _SHORTEST - 1, -1):
            start = self._ends.get(tuple(text[-n:]))
            if start is not None:
                self._found = n
                period = len(text) - start  # a text that repeats itself goes on doing so
                return [text[start + i % period] for i in range(self._paces[n].count(most))]
        return []

    def learn(self, n_guesses: int, n_held: int) -> None:
        super().learn(n_guesses, n_held)
        self._paces[self._found].learn(n_guesses, n_held)


class ModelDraft(Draft):
    """Guesses what a smaller model with the same tokens would write."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model = model

    def begin(self, model: Decoder, rule: Rule, capacity: int) -> None:
        reason = native_refusal(self.model)
        if reason is not None:
            warnings.warn(f"The draft model is not used: {reason}.", UserWarning, stacklevel=2)
        self._is_used = reason is None
        self._rule, self._pace = rule, Pace(price=_find_price(self.model, model), held=0.7)
        self._capacity = min(capacity, self.model.config.max_len)
        self._read: list[int] = []  # what the session has read
        self._session: DirectSession | None = None

    def guess(self, text: Sequence[int], most: int) -> list[int]:
        most = min(self._pace.count(most), self._capacity - len(text))
        if most < 1 or not self._is_used:
            return []
        session = self._catch_up(text)
        guesses: list[int] = []
        while len(guesses) < most and not (guesses and guesses[-1] in self._rule.stops):
            guesses += [token for [token] in session.write(most - len(guesses), self._rule)]
        self._read = [*text, *guesses[:-1]]
        return guesses

    def _catch_up(self, text: Sequence[int]) -> DirectSession:
        """The session, before the first token of the text that it has not read."""
        pairs = zip(self._read, text[:-1], strict=False)
        n = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if self._session is None or len(text) - n > MOST_ROWS:
            options = {"source": None, "max_new_tokens": self._capacity - len(text)}
            self._session = DirectSession(self.model, [text], **options)
        else:
            self._session.go_back(n, text[n:])
        return self._session

    def learn(self, n_guesses: int, n_held: int) -> None:
        super().learn(n_guesses, n_held)
        self._pace.learn(n_guesses, n_held)


def find_draft(draft: object, model: Module) -> Draft | None:
    """The draft that is meant: a model is asked, and "lookup" looks up in the text.

    "auto" is a lookup where that was measured to save time: on a CPU.
    """
    if draft == AUTO:
        on_cpu = next(model.parameters()).device.type == "cpu"
        draft = LOOKUP if on_cpu and isinstance(model, Decoder) else None
    if draft == LOOKUP:
        return LookupDraft()
    if isinstance(draft, Decoder):
        return ModelDraft(draft)
    if draft is None or isinstance(draft, Draft):
        return draft
    given = repr(draft) if isinstance(draft, str) else type(draft).__name__
    raise ConfigError(
        f'draft must be "{AUTO}", "{LOOKUP}", a smaller decoder, a Draft or None; got {given}. A '
        "model is given itself, not by its name."
    )


def check_drafted(draft: Draft, model: GenerativeModel, prompts: Sequence[Sequence[int]]) -> None:
    """Reject what a draft cannot guess for: it is for one text of a decoder with its tokens."""
    if not isinstance(model, Decoder):
        raise ConfigError(
            f"A draft guesses for a decoder; got {type(model).__name__}. Leave draft out."
        )
    if len(prompts) > 1:
        raise ConfigError(
            f"A draft guesses for one text at a time; got {len(prompts)} prompts. Continue each "
            "alone, or leave draft out: a batch reads several tokens in a pass anyway."
        )
    if not isinstance(draft, ModelDraft):
        return
    theirs, ours = (each.config.vocab_size for each in (draft.model, model))
    if theirs != ours:
        raise ConfigError(
            f"A draft model must have the model's vocabulary, which has {ours} tokens; got "
            f"{theirs}. Use a smaller model of the same family."
        )
    tokenizers = [each.tokenizer for each in (draft.model, model) if each.tokenizer is not None]
    if len({tuple(each.encode(_SAMPLE)) for each in tokenizers}) > 1:
        raise ConfigError(
            "A draft model must have the model's tokenizer; these two split a sentence into "
            "different tokens. Use a smaller model of the same family."
        )


_SAMPLE = "Two tokenizers that split this sentence alike (3.14, naïve, 注意力) are the same one."


def _find_price(draft: Decoder, model: Decoder) -> float:
    """What a pass of the draft costs, as a share of a pass of the model."""
    sizes = [sum(each.numel() for each in one.parameters()) for one in (draft, model)]
    return sizes[0] / sizes[1]
