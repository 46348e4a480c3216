"""What every request and every answer has in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST_CHARACTERS = 200_000  # of a text; what a model can read is the model's to say
Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Name = Annotated[str, Field(max_length=300)]
Whole = Annotated[int, Field(ge=0, le=1 << 31)]


class Request(BaseModel):
    """What may be asked: these fields and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """What is answered; documents the schema, and tests hold real answers against it."""

    model_config = ConfigDict(extra="forbid")


class ReadingRequest(Request):
    """A text on a model: what every room looks at."""

    model: Name  # one of /api/models
    text: Text
    target: Text | None = None  # of a translator: what it is to have written
    to: Annotated[str, Field(max_length=20)] | None = None  # or the language it writes
    change: Text | None = None  # interventions, as `glassformer change` reads them
    second: Text | None = None  # the sentence whose run they call $second


class ErrorAnswer(Answer):
    """Why there is no result, in one sentence."""

    error: str


class Status(Answer):
    """Whether the server is well."""

    version: str
    waiting: int  # jobs
    replaced: int  # workers that have died
