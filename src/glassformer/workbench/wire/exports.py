"""A view as a file: a figure, the offline page, the trace, a table, or the lines that make it."""

from typing import Literal

from glassformer.workbench.wire.requests import Answer, ReadingRequest, Whole

Format = Literal["png", "svg", "pdf", "html", "trace", "csv", "python"]


class ExportRequest(ReadingRequest):
    """What is seen of one head of a run, as a file; `python` is the code that reproduces it."""

    format: Format
    site: Whole
    head: Whole  # its number in the model
    query: Whole = 0
    key: Whole = 0
    lang: Literal["en", "zh"] = "en"  # of the words in figures and pages


class ExportAnswer(Answer):
    """A file: its name, its media type, and its content in base64."""

    name: str
    kind: str
    content: str
