"""Atlas: one head of a long text, in tiles of every zoom level."""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, ReadingRequest, Whole

MOST_LABELS = 4096  # in one answer: a text may have a million
Axis = Literal["query", "key"]
Level = Annotated[int, Field(ge=0, le=40)]


class HeadRequest(ReadingRequest):
    """One head of one sequence of a site: the matrix that the atlas shows."""

    site: Whole
    head: Whole  # its number in the model
    sequence: Whole = 0


class OpenRequest(HeadRequest):
    """How large the matrix is, and how its tiles are cut; computes nothing."""


class SurveyRequest(HeadRequest):
    """The next part of the overview: ask again from `stop` until it is the number of queries."""

    start: Whole = 0
    pool: Literal["max", "mean"] = "max"
    has_first: bool = True  # whether the first key is shown


class TileRequest(HeadRequest):
    """A tile: 256 × 256 blocks of 2^level × 2^level cells."""

    level: Level
    row: Whole
    col: Whole
    pool: Literal["max", "mean"] = "max"
    has_first: bool = True


class CellRequest(HeadRequest):
    """One cell, and the text around its query and its key.

    Without a key, it is the strongest of the query. With a level, query and key count its blocks,
    and the cell is the strongest in the block.
    """

    query: Whole
    key: Whole | None = None
    level: Level = 0
    has_first: bool = True


class LabelsRequest(HeadRequest):
    """Tokens along one side of the matrix, at most 4,096 at once."""

    axis: Axis
    start: Whole
    stop: Whole


class FindRequest(HeadRequest):
    """The next place of a text along one side of the matrix, from `start` on, then from 0."""

    axis: Axis
    sought: Annotated[str, Field(min_length=1, max_length=200)]
    start: Whole = 0


class OpenAnswer(Answer):
    """A matrix of `queries` × `keys` cells."""

    queries: int
    keys: int
    is_cross: bool
    is_causal: bool
    tile: int  # blocks along the side of a tile
    top_level: int  # of which one tile shows everything
    middle_level: int  # tiles from here on need the survey of their rows; finer ones do not


class SurveyAnswer(Answer):
    """Lines of the overview at the top level, from query `start` up to `stop`."""

    start: int
    stop: int
    share: float  # of the work, from 0 to 1
    tops: list[float]  # of every level, once all is surveyed: its brightest colour
    tile: "TileAnswer"


class TileAnswer(Answer):
    """Values as little-endian floats in base64, row by row; −1 where nothing may be attended to.

    Cells of level 0 are float32. Pooled blocks are bfloat16, the upper half of a float32, which
    is exact to 0.4 % at any size.
    """

    rows: int
    cols: int
    form: Literal["float32", "bfloat16"]
    values: str
    row_tops: str  # float32: the largest value of each whole line at this level
    top: float  # the brightest colour where all lines share a scale, by the rows surveyed so far


class PlaceText(Answer):
    """A token among its neighbours."""

    start: int  # the position of the first label
    labels: list[str]


class StrongKey(Answer):
    """A key that the query attends to."""

    key: int
    label: str
    weight: float


class CellAnswer(Answer):
    """One cell: exact numbers, and both places in their text."""

    query: int
    key: int
    weight: float | None  # None: not a number
    score: float | None  # None where the query may not see the key
    is_visible: bool
    rank: int | None  # of the key among those of the query, from 1; None if it is not visible
    n_visible: int  # keys that the query may see
    query_text: PlaceText
    key_text: PlaceText
    strongest: list[StrongKey]


class LabelsAnswer(Answer):
    """One label for each token."""

    start: int
    labels: list[str]


class FindAnswer(Answer):
    """Where a text was found; None if it is nowhere."""

    place: int | None
    n_places: int  # in the whole text, counted up to a limit
