"""What an architecture is to us: a table of names, and its config read and written."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.layers.feed_forward import Activation
from glassformer.models.checkpoints.names import Columns, Table
from glassformer.models.config import Config
from glassformer.settings import quote

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
FOREIGN_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


class Foreign:
    """The foreign config.json: fields by name and type, and one sentence where one does not fit."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.kind = str(values.get("model_type"))

    def get(self, name: str, default: Any = None) -> Any:
        value = self.values.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number of at least 1, or `least`; one without a default must be there."""
        value = self.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._value_error(name, "a whole number", value)
        if not least <= value < 2**31:
            raise self._value_error(name, f"at least {least} and below 2³¹", value)
        return value

    def number(self, name: str, default: float | int | None = None) -> float:
        value = self.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._value_error(name, "a number", value)
        if not abs(value) < 1e300:  # nor NaN, nor an integer of a thousand digits
            raise self._value_error(name, "a finite number", value)
        return float(value)

    def optional_number(self, name: str) -> float | None:
        return None if self.get(name) is None else self.number(name)

    def flag(self, name: str, default: bool) -> bool:
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self._value_error(name, "true or false", value)
        return value

    def table(self, name: str) -> dict[str, Any]:
        value = self.get(name, {})
        if not isinstance(value, dict):
            raise self._value_error(name, "a table", value)
        return value

    def word(self, name: str, default: str, known: Iterable[str]) -> str:
        value = self.get(name, default)
        if not isinstance(value, str) or value not in known:
            raise self._value_error(name, f"one of {', '.join(known)}", value)
        return value

    def activation(self, name: str, default: str) -> Activation:
        return ACTIVATIONS[self.word(name, default, ACTIVATIONS)]

    def require(self, name: str, allowed: Any) -> None:
        """A field that we know with one value alone, and that may be left out."""
        value = self.get(name, allowed)
        if value != allowed:
            raise CheckpointError(
                f"A {self.kind} model with {name}={quote(value)} is not known to glassformer, only "
                f"with {allowed!r}."
            )

    def require_equal(self, first: str, second: str, default: int) -> int:
        """Two fields that must agree: encoder and decoder are of one width here."""
        a, b = self.whole(first, default), self.whole(second, default)
        if a != b:
            raise CheckpointError(
                f"{first} and {second} must be equal for glassformer; config.json has {a} and {b}."
            )
        return a

    def _value_error(self, name: str, what: str, value: Any) -> CheckpointError:
        has = "it is missing" if value is None else f"it is {quote(value)}"
        return CheckpointError(
            f"{name} in config.json of a {self.kind} model must be {what}; {has}."
        )


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A kind of model that transformers knows: its names beside ours, its config as ours."""

    model_type: str
    prefix: str  # of the bare model, left out where that was saved alone
    columns: Columns
    gated_columns: Columns | None = None  # where a gate has names of its own
    read: Callable[[Foreign, set[str]], Config]  # the names tell which heads there are
    write: Callable[[Config], dict[str, Any]]  # "architectures" included
    ignored: str = r"(?!)"  # tensors that carry nothing we need

    def table(self, config: Config) -> Table:
        gated = config.gated and self.gated_columns is not None
        columns: Any = self.gated_columns if gated else self.columns
        return Table(columns, 0 if config.experts is None else config.experts.n_experts)

    def is_ignored(self, name: str) -> bool:
        return re.fullmatch(self.ignored, name) is not None

    def with_prefix(self, name: str, names: set[str]) -> str:
        """The full name of a tensor, also where the bare model was saved without its prefix."""
        bare = not any(each.startswith(self.prefix) for each in names)
        return self.prefix + name if bare else name
