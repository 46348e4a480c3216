"""What interventions may name that no text can hold: traces, a direction, a bias.

A request is stateless, so its interventions refer to runs by what they are, and a worker makes them
when it reads the text:

    $this        the run without interventions       ablate(decoder.2.cross, how=mean, of=$this)
    $second      the run of the second sentence      patch(decoder.2.cross, trace=$second, head=1)
    $direction   from this text to the second one    steer(encoder.2.mlp, vector=$direction)
    $alibi       ALiBi for the heads of the place    swap(decoder.1.self, bias=$alibi)

A direction is the mean of the residual stream over the positions of the second sentence, at the
place that is steered, less that of the first.
"""

import re
from collections.abc import Callable
from typing import Any

import torch

from glassformer.errors import InterventionError
from glassformer.functional import ALiBi
from glassformer.tracing import Trace
from glassformer.tracing.interventions import Changes
from glassformer.tracing.interventions.expression import read_changes

_REFERENCE = re.compile(r"\$([a-z]+)")
_PLACE = re.compile(r"\w+\s*\(\s*([^\s(),=&$]+)")
_NAMES = ("this", "second", "direction", "alibi")


def read_references(text: str, this: Callable[[], Trace], second: Callable[[], Trace]) -> Changes:
    """The interventions of a text; runs are made where it refers to them."""
    held: list[Any] = []

    def hold(found: re.Match[str]) -> str:
        name = found[1]
        if name not in _NAMES:
            known = ", ".join(f"${each}" for each in _NAMES)
            raise InterventionError(f"Interventions may refer to {known}; got {found[0][:60]!r}.")
        held.append(_find_value(name, _find_place(text[: found.start()]), this, second))
        return f"${len(held) - 1}"

    return read_changes(_REFERENCE.sub(hold, text), held)


def _find_place(before: str) -> str:
    """The place of the intervention that a reference is in: the last one named before it."""
    places = [found[1] for found in _PLACE.finditer(before) if "." in found[1]]
    return places[-1] if places else ""


def _find_value(
    name: str, place: str, this: Callable[[], Trace], second: Callable[[], Trace]
) -> Any:
    if name == "this":
        return this()
    if name == "second":
        return second()
    if name == "alibi":
        site = this()[place]
        return ALiBi.of_heads(site.n_heads, site.q.device)
    stack = place.partition(".")[0]
    first, other = (trace().residual(stack).after(place)[0] for trace in (this, second))
    return torch.sub(other.mean(0), first.mean(0))
