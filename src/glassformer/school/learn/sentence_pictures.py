"""Search by meaning with the encoder that ships, where it works and where it does not."""

from collections.abc import Callable
from functools import cache

import torch

from glassformer.generation import embed
from glassformer.languages import Language
from glassformer.models import Encoder
from glassformer.models.checkpoints import load
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.picture import Album, Picture

DOCUMENTS = (
    "The king sat upon his throne.",
    "The ship sailed across the sea.",
    "They were married in the church.",
    "The thief stole the gold.",
    "The dog bit the man.",
    "He loved her with all his heart.",
)
QUERIES = (
    "The monarch took his royal seat.",
    "The robber carried off the treasure.",
    "The wedding was held before the priest.",
    "The man bit the dog.",
    "He did not love her at all.",
    "My computer has no network.",
)


@cache
def _reader() -> Encoder:
    return load("reader")  # type: ignore[return-value]  # the reader is an encoder


def _search(language: Language) -> Picture:
    """For each query all documents, the nearest first."""
    with torch.no_grad():
        vectors = embed(_reader(), [*QUERIES, *DOCUMENTS])
    cosines = vectors[: len(QUERIES)] @ vectors[len(QUERIES) :].T
    title = language.say("learn.picture.cosines")
    return Album(
        tuple(
            (query, _rank(row.tolist(), title)) for query, row in zip(QUERIES, cosines, strict=True)
        )
    )


def _rank(cosines: list[float], title: str) -> Bars:
    ranked = sorted(zip(cosines, DOCUMENTS, strict=True), reverse=True)
    return Bars(tuple((text, cosine, f"{cosine:.2f}") for cosine, text in ranked), title, full=1.0)


SENTENCE_PICTURES: dict[str, Callable[[Language], Picture]] = {"sentence-search": _search}
