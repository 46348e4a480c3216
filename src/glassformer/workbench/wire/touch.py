"""Touch: a run with interventions against the run without them, on the same tokens."""

from glassformer.workbench.wire.requests import Answer, Name, ReadingRequest, Whole


class ChangeRequest(ReadingRequest):
    """What the interventions do to a head, a row of it, and the predictions."""

    site: Name
    head: Whole
    query: Whole
    key: Whole = 0  # long texts are shown around this cell
    position: Whole | None = None  # of the predictions; None: where they tell most


class CellShift(Answer):
    """One key of the chosen query: its weight without the interventions and with them."""

    key: int
    label: str
    before: float
    after: float


class HeadShift(Answer):
    """The weights of a head in both runs; of a long text, the part around the chosen cell."""

    rows: list[str]  # labels of the queries shown
    keys: list[str]
    first_row: int
    first_key: int
    before: list[list[float]]
    after: list[list[float]]
    strongest: list[CellShift]  # of the chosen query, among all keys


class TokenShift(Answer):
    """A token that may be written, and its probability in both runs."""

    token: str
    before: float
    after: float


class HeadDistance(Answer):
    """How far the attention of a head has moved: the mean total variation distance of its rows."""

    site: str
    head: int
    distance: float


class SiteFacts(Answer):
    """A site as it is without interventions: what its switches start from."""

    scale: float
    mask: str | None
    has_bias: bool
    positions: str | None  # the kind of positions of the model; None: cross-attention has none
    is_cross: bool


class ChangeAnswer(Answer):
    """Both runs, side by side."""

    change: str  # the interventions as they print
    site: SiteFacts
    query: int  # the one shown: the last, where the unchanged text is shorter
    head: HeadShift | None  # None: the changed run has no such attention
    positions: list[str]  # labels of what is read; empty where nothing is predicted
    position: int
    tokens: list[TokenShift]  # the most probable of either run
    divergence: list[float]  # at each position: KL from before to after, in nats
    moved: list[HeadDistance]  # the most moved first


class RewriteRequest(ReadingRequest):
    """What the model writes with the interventions and without them."""


class RewriteAnswer(Answer):
    """A translation or a continuation; None where the model writes neither."""

    before: str | None
    after: str | None
