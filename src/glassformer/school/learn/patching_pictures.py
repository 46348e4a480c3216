"""Where heads look and what they carry: the writer reads a text twice, with one noun exchanged."""

from collections.abc import Callable
from typing import Any

import torch

from glassformer.analysis import sweep
from glassformer.languages import Language
from glassformer.models.checkpoints import load
from glassformer.school.learn.picture import Album, Matrix, Picture, Row
from glassformer.tracing import watch

_PAIRS = (
    ("I told the {} that", "king", "queen"),
    ("When the {} saw the letter,", "father", "mother"),
    ("It was late, and the {} was very tired, for", "man", "woman"),
    ("The {} went into the garden because", "daughter", "son"),
)


def _patched_heads(language: Language) -> Picture:
    """Each head of the writer: its weight on the noun, and the effect of its patch."""
    model = load("writer")
    return Album(
        tuple(
            (text.format(f"{here} / {there}"), _compare(model, text, here, there, language))
            for text, here, there in _PAIRS
        )
    )


def _compare(model: Any, text: str, here: str, there: str, language: Language) -> Picture:
    clean, other = (
        torch.tensor([model.tokenizer.encode(text.format(noun))]) for noun in (here, there)
    )
    traces = []
    for tokens in (other, clean):  # the clean one last: the loop below reads it
        with torch.no_grad(), watch(model, residual=True) as trace:
            model(tokens)
        traces.append(trace)
    (place,) = (clean[0] != other[0]).nonzero()[0].tolist()
    weights = torch.stack([site.weights(rows=slice(-1, None))[:, 0, place] for site in traces[1]])
    # The clean run gets what a head adds in the other one: 0 is the clean answer, 1 the other.
    effects = sweep(model, traces[0], traces[1], metric=(" he", " she")).effects
    rows = tuple(str(i) for i in range(len(weights)))
    columns = tuple(str(i) for i in range(weights.shape[1]))
    say = language.say
    return Row(
        (
            Matrix("weights", weights, rows, columns, say("learn.picture.noun")),
            Matrix("weights", effects, rows, columns, say("learn.picture.patched")),
        )
    )


PATCHING_PICTURES: dict[str, Callable[[Language], Picture]] = {"patched-heads": _patched_heads}
