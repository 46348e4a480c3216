"""What an architecture is to us: a table of names, and its config read and written."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.layers.feed_forward import Activation
from glassformer.models.checkpoints.names import Columns, Table
from glassformer.models.config import Config

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
    """The foreign config.json: fields by name, and one sentence where one does not fit."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.kind = str(values.get("model_type"))

    def get(self, name: str, default: Any = None) -> Any:
        value = self.values.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number; one without a default must be there."""
        value = self.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise CheckpointError(
                f"config.json of a {self.kind} model must have {name}, a whole number; it has "
                f"{'nothing' if value is None else repr(value)}."
            )
        return value

    def number(self, name: str, default: float) -> float:
        value = self.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise CheckpointError(
                f"{name} in config.json of a {self.kind} model must be a number; it is {value!r}."
            )
        return float(value)

    def activation(self, name: str, default: str) -> Activation:
        value = self.get(name, default)
        if value not in ACTIVATIONS:
            raise CheckpointError(
                f"{name} must be one of {', '.join(ACTIVATIONS)}; config.json says {value!r}."
            )
        return ACTIVATIONS[value]

    def only(self, name: str, allowed: Any) -> None:
        """A field that we know with one value alone, and that may be left out."""
        value = self.get(name, allowed)
        if value != allowed:
            raise CheckpointError(
                f"A {self.kind} model with {name}={value!r} is not known to glassformer, only with "
                f"{allowed!r}."
            )

    def same(self, first: str, second: str, default: int) -> int:
        """Two fields that must agree: encoder and decoder are of one width here."""
        a, b = self.whole(first, default), self.whole(second, default)
        if a != b:
            raise CheckpointError(
                f"{first} and {second} must be equal for glassformer; config.json has {a} and {b}."
            )
        return a


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
        return Table(self.gated_columns if gated else self.columns)  # type: ignore[arg-type]

    def is_ignored(self, name: str) -> bool:
        return re.fullmatch(self.ignored, name) is not None

    def with_prefix(self, name: str, names: set[str]) -> str:
        """The full name of a tensor, also where the bare model was saved without its prefix."""
        bare = not any(each.startswith(self.prefix) for each in names)
        return self.prefix + name if bare else name
