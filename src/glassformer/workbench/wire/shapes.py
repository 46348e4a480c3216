"""Shapes: the architecture of a model as nested boxes, with the cost of each."""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.requests import Answer, Name, ReadingRequest
from glassformer.workbench.wire.steps import NamedShape

Size = Annotated[int, Field(ge=1, le=1 << 20)]


class ShapesRequest(ReadingRequest):
    """The shapes of a model, or of one with other sizes; no weights are allocated."""

    preset: Name | None = None  # an architecture by name in the place of the model
    batch: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    length: Size | None = None
    context: Size | None = None
    dim: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    heads: Annotated[int, Field(ge=1, le=1024)] | None = None
    kv_heads: Annotated[int, Field(ge=1, le=1024)] | None = None
    layers: Annotated[int, Field(ge=1, le=128)] | None = None
    hidden_dim: Annotated[int, Field(ge=1, le=1 << 20)] | None = None


class CostAnswer(Answer):
    """What a box costs; bytes are those of bfloat16."""

    parameters: int
    flops: int  # of matrix products
    bytes: int  # of the results


class ProductAnswer(Answer):
    """A product of two tensors as an einsum: which letter is summed over."""

    left: list[str]
    right: list[str]
    out: list[str]
    summed: str


class BoxAnswer(Answer):
    """A part of the model, with its parts inside."""

    id: str
    kind: Literal["model", "stack", "section", "block", "part", "step"]
    name: str  # of a stack, a part or an operation; the page has words for it
    detail: str  # which matrix, which mask, which norm
    count: int  # how many blocks are like this one
    blocks: list[int]
    cost: CostAnswer  # of all of them
    inputs: list[NamedShape]
    outputs: list[NamedShape]
    parameters: list[NamedShape]
    product: ProductAnswer | None
    is_held: bool  # False: a fused kernel never holds the result
    is_tied: bool
    children: list["BoxAnswer"]


class SizesAnswer(Answer):
    """The sizes that can be changed."""

    batch: int
    length: int
    context: int | None
    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int
    hidden_dim: int


class ShapesAnswer(Answer):
    """The whole drawing."""

    name: str
    family: Literal["encoder", "decoder", "encoder_decoder"]
    letters: dict[str, int]  # the size of each letter
    sizes: SizesAnswer
    presets: list[str]
    cache_bytes_per_token: int
    model: BoxAnswer


class MeasuredShapesRequest(ReadingRequest):
    """What one run shows of the shapes of any model, also of one that cannot be drawn."""


class ModuleEntry(Answer):
    """A module with parameters; alike ones in a row are one entry."""

    name: str
    kind: str  # its class
    depth: int
    count: int
    parameters: int  # of all that it counts; inside, of one


class SiteShapes(Answer):
    """What an attention site was given, as (B, H, L, D)."""

    name: str
    q: list[int]
    k: list[int]
    v: list[int]


class MeasuredShapesAnswer(Answer):
    """Modules and attention sites as they were in the run."""

    name: str
    parameters: int | None  # null: a saved trace has no model
    modules: list[ModuleEntry]
    n_modules: int  # of which the first are listed
    sites: list[SiteShapes]
    presets: list[str]
