"""Steps: one row of one head, from the residual stream through attention and back to it."""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, Name, ReadingRequest, Whole


class StepsRequest(ReadingRequest):
    """Every operand of one row of one head."""

    site: Name
    head: Whole
    query: Whole


class FeedForwardRequest(ReadingRequest):
    """The matrices of the feed-forward network after a site."""

    site: Name


class PackedNumbers(Answer):
    """A tensor: its shape, and little-endian float32 or float64 in base64."""

    shape: list[int]
    float32: str | None = None
    float64: str | None = None


class NamedShape(Answer):
    """A tensor of a step: its name, its shape in letters and in numbers."""

    name: str
    letters: list[str]
    numbers: list[int]


class SourceLine(Answer):
    """Where the code of a step is, from the package's folder on."""

    file: str
    line: int
    code: str


class StepAnswer(Answer):
    """One step: what it computes, on what, and where its code is."""

    id: Annotated[str, Field(pattern="^[a-z_]+$")]
    formula: str
    shapes: list[NamedShape]  # of its operands, then of its result
    source: SourceLine
    # How far its result lies from what the model computed, at most; None: that was not recorded.
    difference: float | None
    is_changed: bool  # by an intervention: it is not what its operands give


class NormNumbers(Answer):
    """A norm: (x − mean) / size · gain + bias; the mean only where it is centred."""

    is_centred: bool
    eps: float
    gain: PackedNumbers | None
    bias: PackedNumbers | None


class MatrixNumbers(Answer):
    """A matrix and its bias; of one that is too wide, the first columns."""

    weight: PackedNumbers
    bias: PackedNumbers | None
    columns: int  # that the whole matrix has


class RotationNumbers(Answer):
    """The angles of RoPE at the query's position."""

    cos: PackedNumbers
    sin: PackedNumbers
    layout: Literal["half", "interleaved"]


class OtherKeys(Answer):
    """The keys that are not sent, taken together."""

    n: int
    lse: float | None  # the log-sum-exp of their scores; None: all are hidden
    out: PackedNumbers  # their weighted mean value


class FeedForwardNumbers(Answer):
    """The feed-forward network at the query's position."""

    norm: NormNumbers | None
    after_norm: NormNumbers | None
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"]
    read: PackedNumbers
    up: PackedNumbers
    gate: PackedNumbers | None
    hidden: PackedNumbers
    added: PackedNumbers
    end: PackedNumbers
    has_matrices: bool  # whether the job feed_forward sends them, or they are too large


class StepsAnswer(Answer):
    """Every operand of one row; what follows from them is computed in the page."""

    site: str
    kind: Literal["self", "cross"]
    head: int
    key_head: int
    query: int
    query_label: str
    next_label: str | None
    key_labels: list[str]
    keys: list[int]  # the positions of the keys that are sent
    n_keys: int
    others: OtherKeys | None
    steps: list[StepAnswer]
    scale: float
    softcap: float | None
    head_dim: int
    allowed: list[bool]
    bias: PackedNumbers | None
    column_lse: list[float | None] | None  # over the queries: the wrong axis of softmax
    q: PackedNumbers
    k: PackedNumbers
    v: PackedNumbers
    # From here on None where the trace has no model: a saved one.
    x: PackedNumbers | None = None
    norm: NormNumbers | None = None
    after_norm: NormNumbers | None = None
    inputs: PackedNumbers | None = None  # what the sent keys are made of; None: too many numbers
    w_q: MatrixNumbers | None = None
    w_k: MatrixNumbers | None = None
    w_v: MatrixNumbers | None = None
    w_o: MatrixNumbers | None = None
    projected: PackedNumbers | None = None
    q_norm: NormNumbers | None = None
    k_norm: NormNumbers | None = None
    rotation: RotationNumbers | None = None
    outs: PackedNumbers | None = None
    rest: PackedNumbers | None = None
    added: PackedNumbers | None = None
    end: PackedNumbers | None = None
    feed_forward: FeedForwardNumbers | None = None
    next_site: str | None = None  # the cross-attention that is next, where it is not feed-forward


class FeedForwardAnswer(Answer):
    """The matrices of a feed-forward network; gate and up are one matrix, the gate first."""

    up: MatrixNumbers
    down: MatrixNumbers
