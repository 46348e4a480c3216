"""Flow and why: the residual stream of a token, what it would say on its way, and the reasons.

The token is named by a site and a query of it: the stream is that of the site's stack.
Sentences that belong to numbers are answered in every language, by its code.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, Name, ReadingRequest, Text, Whole

Words = dict[str, str]  # by language
Token = Whole | Annotated[str, Field(max_length=200)]  # its number, or as it reads


class FlowRequest(ReadingRequest):
    """The residual stream of one token."""

    site: Name
    query: Whole


class Border(Answer):
    """A state of the stream: its name and its norm."""

    name: str
    norm: float


class Inflow(Answer):
    """What one part adds at the token."""

    name: str
    kind: Literal["self", "cross", "mlp", "mixer", "change", "layers"]
    layer: int
    site: str | None  # of attention
    norm: float
    share: float  # |added| / (|added| + |state before|)


class FlowAnswer(Answer):
    """The stream from its start to its end: after each border flows in the next part."""

    stack: str
    position: int
    label: str
    borders: list[Border]
    inflows: list[Inflow]
    has_readout: bool  # whether tokens can be read from it


class LensRequest(FlowRequest):
    """What the stream of the token would say at every border."""


class Said(Answer):
    """A token and its probability."""

    token: str
    id: int
    probability: float


class BorderLens(Answer):
    """What one border says."""

    name: str
    top: list[Said]
    entropy: float  # in nats
    divergence: float  # from the end: KL, in nats
    rank: int  # of the token that the end puts first; 0 is the first


class LensAnswer(Answer):
    """What each border says, in order; `settled` is the first from which on the answer stays."""

    borders: list[BorderLens]
    settled: int


class AttributeRequest(FlowRequest):
    """What each part or head adds to the logit of a token."""

    token: Token | None = None  # None: the most probable
    against: Token | None = None  # None: of one token alone
    by: Literal["part", "head"] = "part"


class Contribution(Answer):
    """What one part adds, by itself; a head has a number."""

    name: str
    value: float
    part: str
    head: int | None


class AttributeAnswer(Answer):
    """All contributions, the largest first; with the remainder they are the logit."""

    token: str
    against: str | None
    position: str
    logit: float
    shares: list[Contribution]
    remainder: float  # rounding
    frozen: Words


class WhyRequest(FlowRequest):
    """Why the model prefers one token to another."""

    token: Token | None = None  # None: the most probable
    against: Token | None = None  # None: the most probable other one
    top: Annotated[int, Field(ge=1, le=20)] = 8
    depth: Annotated[int, Field(ge=1, le=4)] = 3
    branches: Annotated[int, Field(ge=1, le=6)] = 3
    reference: Text | None = None  # whose means stand in for removed parts; None: a neutral text


class WhyAnswer(Answer):
    """The chain of reasons as a tree, in every language."""

    token: str
    against: str
    position: str
    logit: float
    trees: dict[str, dict[str, Any]]  # as render/tree writes them
    named: list[str]


class Judged(Answer):
    """The difference of the logits when parts are removed and the model runs."""

    whole: float
    kept: float
    removed: float
    none: float
    carried: float
    needed: float
    n_parts: int
    random_kept: list[float]
    random_removed: list[float]
    is_telling: bool
    is_enough: bool
    is_needed: bool


class VerdictAnswer(Answer):
    """What the runs without the named parts have shown, in words and numbers."""

    sentence: Words
    numbers: Judged | None  # None: it could not be tested, as the sentence says
