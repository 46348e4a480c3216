"""A trace as render/page describes it, name for name; what the offline page holds as well."""

from typing import Annotated, Any, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer

Offset = int | list[int] | None


class Packed(Answer):
    """Numbers of a mask or a bias, in base64."""

    shape: list[int]
    float32: str


class Bits(Answer):
    """A mask, one bit for each cell, in base64."""

    shape: list[int]
    bits: str


TensorParts = Packed | Bits


class Rows(Answer):
    """Row vectors as whole numbers from −32767 to 32767, and what one step of each row is worth."""

    int16: str
    steps: str


class Causal(Answer):
    kind: Literal["Causal"]
    offset: Offset


class Window(Answer):
    kind: Literal["Window"]
    left: int | None
    right: int | None
    offset: Offset


class Prefix(Answer):
    kind: Literal["Prefix"]
    length: int | list[int]


class Padding(Answer):
    kind: Literal["Padding"]
    lengths: list[int]
    of: Literal["keys", "queries", "both"]
    side: Literal["right", "left"]


class Documents(Answer):
    kind: Literal["Documents"]
    ids: list[int] | list[list[int]]
    query_ids: list[int] | list[list[int]] | None


class Explicit(Answer):
    kind: Literal["Explicit"]
    tensor: int  # which of the tensors


class BothMasks(Answer):
    kind: Literal["And", "Or"]
    a: "MaskParts"
    b: "MaskParts"


class NotMask(Answer):
    kind: Literal["Not"]
    a: "MaskParts"


MaskParts = Annotated[
    Causal | Window | Prefix | Padding | Documents | Explicit | BothMasks | NotMask,
    Field(discriminator="kind"),
]


class ALiBi(Answer):
    kind: Literal["ALiBi"]
    slopes: int  # which of the tensors
    offset: Offset


class RelativeBuckets(Answer):
    kind: Literal["RelativeBuckets"]
    table: int  # which of the tensors
    bidirectional: bool
    max_distance: int
    buckets: list[int]
    first: int
    offset: Offset


class ExplicitBias(Answer):
    kind: Literal["ExplicitBias"]
    tensor: int


class BiasSum(Answer):
    kind: Literal["BiasSum"]
    a: "BiasParts"
    b: "BiasParts"


BiasParts = Annotated[ALiBi | RelativeBuckets | ExplicitBias | BiasSum, Field(discriminator="kind")]


class DifferenceParts(Answer):
    """How far weights · v lie from what the model computed; None is not a number."""

    recorded: float | None  # with the operands as they were recorded
    page: float | None  # and as they are sent, in 16 bits
    queries: int | None  # how many were compared, None for all


class SiteParts(Answer):
    """One attention site: what is shown first, and how its scores are computed."""

    name: str
    queries: list[int]  # for each sequence, which of the run's names its rows have
    keys: list[int]
    next: list[int] | None  # and which the tokens after those that rows read; None: none predicted
    shape: Annotated[list[int], Field(min_length=4, max_length=4)]  # B, H, L, S
    heads: list[int]  # their numbers in the model: not all may have been recorded
    # The key position of each query; of queries that follow each other, the first.
    query_positions: int | list[int]
    n_kv_heads: int
    head_dim: int
    value_dim: int
    dtype: str
    scale: float
    softcap: float | None
    mask: MaskParts | None
    bias: BiasParts | None


class RunParts(Answer):
    """One run of a model."""

    titles: list[str]  # what was read and written, for each sequence
    crosses: bool  # one text is read and another written
    names: list[list[str | None]]  # lists of tokens, each once; None: not known
    sites: list[SiteParts]
    refusals: dict[str, str]


class Opening(Answer):
    """Where a page opens: the head and the cell that tell most."""

    run: int
    sequence: int
    site: int
    head: int
    query: int
    key: int


class PageParts(Answer):
    """A trace without its operands."""

    kind: Literal["trace"]
    version: int
    name: str | None  # of the model
    model: dict[str, Any]
    opening: Opening
    runs: list[RunParts]
