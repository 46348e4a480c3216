"""What travels between the pages and the server; TypeScript types are generated from these."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_CHARACTERS = 200_000  # of a text; what a model can read is the model's to say
Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Name = Annotated[str, Field(max_length=300)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RunRequest(_Request):
    """A text that a model reads, and whatever says what it does with it."""

    model: Name
    text: Text
    target: Text | None = None  # of a translator: what it is to have written
    to: Annotated[str, Field(max_length=20)] | None = None  # or the language it writes
    change: Text | None = None  # interventions, as `glassformer change` reads them


class SiteRequest(RunRequest):
    """The operands of one attention site of a run."""

    site: Annotated[int, Field(ge=0, le=100_000)]


class ErrorAnswer(BaseModel):
    """Why there is no result, in one sentence."""

    error: str


class Status(BaseModel):
    """Whether the server is well."""

    version: str
    waiting: int  # jobs
    replaced: int  # workers that have died


class ModelEntry(BaseModel):
    """A model that can be chosen."""

    name: str
    family: Literal["encoder", "decoder", "encoder-decoder"]
    languages: list[str]  # that it translates into
    included: bool
