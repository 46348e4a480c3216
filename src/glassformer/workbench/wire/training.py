"""Training: what a run has logged, what its model wrote, its heads from snapshot to snapshot."""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, Name, Request, Whole

MOST_HEADS = 4  # in a film
Checksum = Annotated[int, Field(ge=0, lt=1 << 32)]


class Mark(Request):
    """How far a file has been read, and the CRC-32 of what was read: it may have been rewritten."""

    size: Whole
    checksum: Checksum


class MarkAnswer(Answer):
    """Where to go on reading."""

    size: int
    checksum: int


class TrainingRequest(Request):
    """A training run: what is new since it was last asked for."""

    model: Name  # the run, one of /api/models
    metrics: Mark | None = None
    samples: Mark | None = None


class Measurement(Answer):
    """What was logged at a step: loss, lr, tokens_per_s, valid_loss … as training names them."""

    step: int
    epoch: int | None
    values: dict[str, float]


class Sample(Answer):
    """What the model made of the text of the snapshots."""

    step: int
    text: str
    sample: str


class MetricsRead(Answer):
    """New lines of metrics.jsonl."""

    mark: MarkAnswer
    is_anew: bool  # what was read before is not there any more: forget it
    is_more: bool  # ask again at once
    lines: list[Measurement]


class SamplesRead(Answer):
    """New lines of samples.jsonl."""

    mark: MarkAnswer
    is_anew: bool
    is_more: bool
    lines: list[Sample]


class TrainingAnswer(Answer):
    """A training run."""

    folder: str
    # begun: nothing is logged yet; unfinished: it trains, or its process was killed
    state: Literal["begun", "unfinished", "stopped", "diverged", "finished"]
    seconds_since: float | None  # since something was logged
    task: str | None
    steps: int | None  # where it ends
    epochs: int | None
    text: str | None  # of the snapshots
    snapshots_every: int  # steps; 0: never
    snapshots: list[int]  # steps that have a trace
    metrics: MetricsRead
    samples: SamplesRead


class FilmHead(Request):
    """A head, by its site and its number."""

    site: Name
    head: Whole


class FilmRequest(Request):
    """The maps of some heads in every snapshot of a run."""

    model: Name
    heads: Annotated[tuple[FilmHead, ...], Field(max_length=MOST_HEADS)] = ()  # none: the sharpest
    after: Annotated[int, Field(ge=-1, le=1 << 40)] = -1  # only snapshots of later steps


class SiteHeads(Answer):
    """A site, and the heads that it has."""

    site: str
    heads: list[int]


class ChosenHead(Answer):
    """A head of the film."""

    site: str
    head: int


class FilmMap(Answer):
    """The weights of a head; of a long text the largest of each block."""

    site: str
    head: int
    rows: list[str]  # tokens; empty where the map is pooled
    keys: list[str]
    weights: list[list[float]]
    is_pooled: bool


class Frame(Answer):
    """The chosen heads at one step."""

    step: int
    maps: list[FilmMap]  # of the heads that the snapshot has


class FilmAnswer(Answer):
    """A film of heads that form."""

    sites: list[SiteHeads]
    chosen: list[ChosenHead]
    frames: list[Frame]
    unreadable: list[int]  # steps whose snapshot is damaged
