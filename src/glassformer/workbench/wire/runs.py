"""A run and its sites: what the rooms show first, and the operands of a site."""

from typing import Literal

from glassformer.workbench.wire.pages import DifferenceParts, PageParts, Rows, TensorParts
from glassformer.workbench.wire.requests import Answer, ReadingRequest, Whole


class ModelEntry(Answer):
    """A model or a saved trace that can be chosen; the first of the list is the one to open."""

    name: str
    kind: Literal["included", "folder", "gguf", "trace"]
    family: (
        Literal["encoder", "decoder", "encoder_decoder"] | None
    )  # None: not known before it runs
    languages: list[str]  # that it translates into, where it must be said into which
    example: str | None  # a text to begin with; None: a trace, which is shown as it was saved


class RunRequest(ReadingRequest):
    """A text is read."""


class SiteRequest(ReadingRequest):
    """The operands of one attention site of a run."""

    site: Whole


class Guess(Answer):
    """A token, and the probability that the model gives it."""

    piece: str
    token: int
    probability: float


class Outcome(Answer):
    """What a model makes of a text: a translation, the next token, filled gaps, or nothing."""

    kind: Literal["translation", "continuation", "gaps", "none"]
    text: str | None  # a translation
    guesses: list[list[Guess]]  # for each place that is guessed: the most probable tokens


class Insight(Answer):
    """The cell that tells most: where the run opens, in numbers."""

    site: str
    head: int
    query: int
    key: int
    weight: float
    query_label: str  # what the query reads
    key_label: str
    next_label: str | None  # what is written or read after it


class RunAnswer(Answer):
    """All that is shown of a run before a site is opened."""

    page: PageParts
    tensors: list[TensorParts]  # of masks and biases, each once
    opened: "SiteAnswer | None"  # the site that the run opens with; None: its text is too long
    outcome: Outcome
    insight: Insight | None


class SiteAnswer(Answer):
    """The operands of one site, and how exact they are."""

    q: Rows
    k: Rows
    v: Rows
    difference: DifferenceParts | None  # None: the model's output was not recorded
