"""What all interventions have in common: a place, a printed form, and when two are equal."""

import re
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from glassformer.errors import InterventionError
from glassformer.functional import Bias, Mask
from glassformer.tracing.interventions.numbers import (
    Numbers,
    as_tuple,
    check_numbers,
    format_numbers,
)
from glassformer.tracing.trace import Trace

if TYPE_CHECKING:
    from glassformer.tracing.interventions.values import Changes

_PLACE = re.compile(r"[^\s(),=&$]{1,200}")


class Intervention:
    """Something that is changed; `a & b` changes both.

    Two are equal if they change the same in the same way; tensors are compared by their values.
    """

    place: str
    sequences: Numbers | None
    numbers: ClassVar = ("head", "positions", "queries", "keys", "sequences")  # if it has them

    def __post_init__(self) -> None:
        if not isinstance(self.place, str) or not _PLACE.fullmatch(self.place):
            raise InterventionError(
                f"A place is a name such as decoder.3.self; got {repr(self.place)[:60]}."
            )
        for name in self.numbers:
            check_numbers(getattr(self, name, None), f"{name} of {self.place}")

    def __and__(self, other: "Intervention | Changes") -> "Changes":
        # Imported here because values.py builds on this file.
        from glassformer.tracing.interventions.values import Changes

        return Changes((self,)) & other

    def __str__(self) -> str:
        return self.format(describe)

    def format(self, describe: Callable[[Any], str]) -> str:
        """As it prints; `describe` says how a value that has no text of its own is written."""
        shown = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if each.name == "place":
                shown.append(value)
            elif not is_same(value, each.default):
                shown.append(f"{each.name}={_format(value, describe)}")
        return f"{type(self).__name__.lower()}({', '.join(shown)})"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]
        return all(is_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        numbers = (as_tuple(getattr(self, name, None)) for name in self.numbers)
        return hash((type(self), self.place, *numbers))

    @property
    def layer(self) -> tuple[str, int]:
        """The stack and the layer that it changes."""
        stack, _, rest = self.place.partition(".")
        number = rest.partition(".")[0]
        if number == "start":
            return stack, 0
        if not number.isdigit():
            raise InterventionError(
                f"A place must name a stack, a layer and a part, decoder.3.self for example; got "
                f"{self.place!r}."
            )
        return stack, int(number)


def has_text(value: Any) -> bool:
    """Whether a value of an intervention prints completely: it holds no trace and no tensor."""
    return (
        value.is_static if isinstance(value, Mask) else not isinstance(value, Tensor | Trace | Bias)
    )


def describe(value: Any) -> str:
    """How a value without a text is shown."""
    if isinstance(value, Tensor):
        return f"tensor({' × '.join(map(str, value.shape))})"
    return "…" if isinstance(value, Trace) else repr(value)


def _format(value: Any, describe: Callable[[Any], str]) -> str:
    if not has_text(value):
        return describe(value)
    if value is None:
        return "none"
    if isinstance(value, float):
        return str(value + 0.0)  # -0.0 is 0.0
    if isinstance(value, str | Mask):
        return value if isinstance(value, str) else repr(value)
    return format_numbers(value)


def is_same(a: Any, b: Any) -> bool:
    """Whether two values of interventions are the same; traces only if they are one."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and bool((a == b.to(a.device)).all())
    if isinstance(a, Mask | Bias) and isinstance(b, Mask | Bias):
        if has_text(a) and has_text(b):
            return repr(a) == repr(b)
        return type(a) is type(b) and all(
            is_same(getattr(a, each.name), getattr(b, each.name)) for each in fields(a)
        )
    if isinstance(a, int | float) and isinstance(b, int | float):
        return float(a) == float(b)
    if isinstance(a, slice | Collection | int) and isinstance(b, slice | Collection | int):
        if isinstance(a, str) or isinstance(b, str):
            return isinstance(a, str) and isinstance(b, str) and a == b
        return as_tuple(a) == as_tuple(b)
    return a is b
