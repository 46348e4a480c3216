"""All heads of a run at a glance: their maps, their roles, and what the model loses without them.

Sites are named by their number in the run, heads by their number in the model.
"""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, ReadingRequest, Whole

Sites = Annotated[list[Whole], Field(max_length=10_000)]


class MapsRequest(ReadingRequest):
    """The weights of every head as a small map."""

    size: Annotated[int, Field(ge=8, le=64)] = 24
    sites: Sites | None = None  # None: all of them


class HeadMap(Answer):
    """The largest weight in each cell; of a short text, the weights themselves."""

    head: int
    top: float  # the largest weight of the head
    cells: str  # base64 of rows × cols bytes: 255 is `top`, 0 is a weight of 0 or a masked one


class SiteMaps(Answer):
    """The maps of one site."""

    site: int
    rows: int
    cols: int
    heads: list[HeadMap]


class MapsAnswer(Answer):
    """The maps of the sites that were asked for, in that order."""

    sites: list[SiteMaps]


class SketchRequest(ReadingRequest):
    """A head of a long text, at once: some of its queries, each of them exact."""

    site: Whole
    head: Whole
    coarse: bool = False  # a quarter of the lines, for the first picture


class SketchAnswer(Answer):
    """A line for each of the chosen queries, a column for each block of neighbouring keys."""

    queries: list[int]  # the places of the lines, evenly spaced
    block: int  # how many keys share a column
    rows: int
    cols: int
    form: Literal["float32"]
    values: str  # base64 of rows × cols numbers: the largest weight of each block
    strongest: str  # base64 of rows × cols int32: which of the block's keys has it
    row_tops: str  # base64 of float32: the largest weight of each line
    top: float


class RolesRequest(ReadingRequest):
    """The role of every head on the text."""


class HeadRole(Answer):
    """Where a head looks, as `glassformer look` names it (look.role.… in the texts)."""

    site: int
    head: int
    role: str | None  # None: cross-attention has none of these
    score: float | None
    sharpness: float | None  # 0 even, 1 a single key; None: no query has a choice


class RolesAnswer(Answer):
    """One entry for each head, site by site."""

    heads: list[HeadRole]


class EffectsRequest(ReadingRequest):
    """What the predictions lose without a head: each is removed by itself, by mean ablation."""


class HeadEffect(Answer):
    """The change of the predictions without a head."""

    site: int
    head: int
    divergence: float  # KL from the model's own predictions, in nats, mean over the text
    loss: float | None  # how much worse the text itself is predicted; None: it is not predicted


class EffectsAnswer(Answer):
    """One entry for each head that was removed."""

    heads: list[HeadEffect]
