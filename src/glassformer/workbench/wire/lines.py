"""The Python lines that reproduce what a room shows; most are asked as the room itself is."""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.atlas import HeadRequest, Level
from glassformer.workbench.wire.flow import WhyRequest
from glassformer.workbench.wire.requests import Answer, Whole
from glassformer.workbench.wire.steps import StepsRequest
from glassformer.workbench.wire.writing import WriteRequest

Finite = Annotated[float, Field(allow_inf_nan=False)]


class FlowLinesRequest(WhyRequest):
    """The stream of a token with its lens, and what wrote a token, by parts, heads or reasons."""

    view: Literal["part", "head", "why"] = "part"


class WriteLinesRequest(WriteRequest):
    """A written text, and the choices of one of its tokens."""

    at: Whole = 0


class StepsLinesRequest(StepsRequest):
    """One row of one head, from the stream to the output, or from a gradient of it back."""

    way: Literal["forward", "back"] = "forward"
    gradient: Annotated[tuple[tuple[Whole, Finite], ...], Field(max_length=4096)] = ()


class RegionRequest(HeadRequest):
    """A part of a head's map: blocks of 2^level × 2^level cells, the ends not included."""

    level: Level
    rows: tuple[Whole, Whole]
    cols: tuple[Whole, Whole]
    pool: Literal["max", "mean"] = "max"
    has_first: bool = True


class LinesAnswer(Answer):
    """A program that prints the numbers of the view."""

    lines: str
