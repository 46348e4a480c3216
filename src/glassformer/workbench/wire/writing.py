"""Writing: a text that a model writes, token by token, and what it looked at for each token."""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, Name, ReadingRequest, Whole

MOST_TOKENS = 200  # of a written text
MOST_BEAMS = 8
Tokens = Annotated[tuple[Whole, ...], Field(max_length=MOST_TOKENS)]


class WriteRequest(ReadingRequest):
    """A text is written: sampled token by token or, with several beams, searched for."""

    kept: Tokens = ()  # the first tokens of the written text, as they are; the rest is written
    max_new_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = 60  # those that are kept included
    temperature: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0  # 0: greedy
    top_k: Annotated[int, Field(ge=1, le=1 << 31)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Whole = 0
    beams: Annotated[int, Field(ge=1, le=MOST_BEAMS)] = 1  # above 1, nothing is sampled


class Choice(Answer):
    """A token that could have been written."""

    token: int
    piece: str
    before: float  # its probability by the model: softmax of the logits
    after: float | None  # after exclusions, temperature, top-k and top-p; None: nothing is sampled


class WriteStep(Answer):
    """One token: what was chosen, and among which."""

    token: int
    piece: str
    is_kept: bool
    is_end: bool  # the token that ends the text
    chosen: Choice
    rank: int  # by the model's probabilities; 0 is the likeliest
    entropy: float  # of the model's probabilities, in nats
    entropy_after: float | None
    top: list[Choice]  # the ten likeliest by the model


class BeamNode(Answer):
    """A hypothesis: the text along its parents, and its own token at the end."""

    parent: int | None  # a number in the list; None: it begins the text
    token: int
    piece: str
    text: str  # from the first new token to this one
    depth: int  # which new token it is, from 0
    log_probability: float  # of the whole text
    score: float  # log-probability over length, by which texts of different length compare
    # extended: others continue it; dead: it was kept, but all that continues it was pruned;
    # open: unfinished when the search ended
    fate: Literal["extended", "dead", "pruned", "finished", "open"]
    least_kept: float | None  # where it was pruned or died: the log-probability that sufficed
    is_best: bool  # on the way to the text that was chosen


class WriteAnswer(Answer):
    """A written text and how it came about."""

    source: list[str]  # what the encoder reads, of a translator
    prompt: list[str]  # what the decoder begins with
    text: str  # what was written, without what ends it, and with what was copied
    copied: list[str]  # parts of the source that a translator could not read
    tokens: list[int]
    ending: Literal["stop", "length"]
    steps: list[WriteStep]
    tree: list[BeamNode] | None  # of a beam search; parents before children
    score: float | None


class LooksRequest(ReadingRequest):
    """What was looked at while a text was written."""

    tokens: Tokens  # what was written
    site: Name | None = None  # None: the mean over all layers and heads
    head: Whole | None = None  # None: the mean over the heads of the site
    most: Annotated[int, Field(ge=1, le=20)] = 5


class LookedAt(Answer):
    """A key, and the weight that it received."""

    key: int
    weight: float


class LooksAt(Answer):
    """For each step the strongest keys of the row that predicted its token, strongest first."""

    of: Literal["source", "tokens"]  # which text the keys are: the source, or prompt and new tokens
    heads: int  # over how many heads the mean was taken
    rows: list[list[LookedAt]]


class LooksAnswer(Answer):
    """Looks at the source, and at what was written before."""

    looks: list[LooksAt]
