"""Learn: the model that is joined from the learner's own exercises."""

from typing import Annotated, Literal

from pydantic import Field

from glassformer.workbench.wire.learn import Code, LearnRequest, Passage
from glassformer.workbench.wire.requests import Answer

Track = Literal["translator", "decoder"]


class CapstoneRequest(LearnRequest):
    """The parts of a model that is joined from the learner's exercises; nothing is run."""

    path: Track


class CapstonePart(Answer):
    """A part before the model runs."""

    name: str
    number: int
    title: str
    file: str
    is_written: bool  # by the learner; the library lends it otherwise
    is_passed: bool  # as an exercise


class CapstoneAnswer(Answer):
    """Which parts are the learner's own, and what the model can be run on."""

    path: Track
    model: str  # whose weights it runs
    parts: list[CapstonePart]
    example: str
    languages: list[str]  # that it translates into; none: it continues the text
    folder: str  # where the parts are looked for


class CapstoneRunRequest(LearnRequest):
    """Join the parts in the learner's practice folder and run the model on a text.

    Each part is graded in a process of its own on what the library's model computes, then they run
    together. Progress is reported after each part; a client that leaves ends the run.
    """

    path: Track
    text: Annotated[str, Field(min_length=1, max_length=500, examples=["Where is the station?"])]
    to: Annotated[Literal["fr", "zh"] | None, Field(examples=["fr"])] = None  # of the translator


class CapstonePartResult(Answer):
    """Whose a part was in this run."""

    name: str
    number: int
    file: str
    state: Literal["yours", "lent", "wrong"]
    line: int | None  # of the mistake


class CapstonePartSaid(Answer):
    """A part in one language; sentences where it is wrong."""

    title: str
    state: str
    sentences: list[list[Passage]]
    where: str


class CapstoneSaid(Answer):
    """A run in one language."""

    title: str
    counts: str
    parts: list[CapstonePartSaid]
    outcome: list[str]  # how the text compares with that of the library's own model


class CapstoneRunAnswer(Answer):
    """What the joined model wrote, in every language: another language must not run it again."""

    path: Track
    text: str
    to: str | None
    parts: list[CapstonePartResult]
    written: str | None  # null: the model did not finish
    is_equal: bool  # to what the library's own model writes, token by token
    is_complete: bool  # and every part is the learner's
    said: dict[Code, CapstoneSaid]
    seconds: float
    isolation: list[str]
    notice: str  # what could not be kept
