"""What charts of results share: headings, numbers as plain values, and what was frozen."""

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from glassformer.languages import Language
from glassformer.render.chart import Number, Values
from glassformer.render.heading import join_labels, name_model, shorten

_DIGITS = 4  # significant, of numbers in a chart


def title_of_run(model: dict[str, Any], tokens: Sequence[str], language: Language) -> str:
    """The model, the text and the interventions of a run; whatever is unknown is left out."""
    is_named = not all(token.isdecimal() for token in tokens)  # else only positions are known
    text = f"“{shorten(join_labels(tokens))}”" if is_named and join_labels(tokens) else ""
    title = language.say("list.colon").join(filter(None, (name_model(model), text)))
    changes = model.get("changes")
    if changes:
        title += f" · {language.say('chart.changed', changes=changes)}"
    return title


def as_rows(values: Tensor) -> tuple[Values, ...]:
    """A matrix as plain numbers, None where one is not finite."""
    return tuple(tuple(map(as_number, row)) for row in values.tolist())


def as_number(value: Number) -> Number | None:
    """A number with a few significant digits; None if it is not finite."""
    if not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}")


def name_frozen(frozen: Sequence[str], language: Language) -> str:
    """What was held at the value that it had, as a list."""
    say = language.say
    known = {
        "the size that the final norm divides by": say("chart.frozen.final"),
        "the sizes that the norms of the stream divide by": say("chart.frozen.stream"),
        "the sizes that the norms of the parts divide by": say("chart.frozen.parts"),
        "attention weights": say("chart.frozen.weights"),
        "the activations of neurons": say("chart.frozen.neurons"),
        "the slopes of the nonlinearity before the unembedding": say("chart.frozen.slopes"),
    }
    return say("list.comma").join(known.get(each, each) for each in frozen)
