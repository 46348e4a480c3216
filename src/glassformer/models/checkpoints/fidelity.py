"""What a model would lose in a foreign layout, named field by field."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from glassformer.models.checkpoints.assembly import build_on_meta
from glassformer.models.checkpoints.names import Table
from glassformer.models.config import Config, Dropout
from glassformer.settings import quote

_MOST_NAMED = 3


def describe_loss(config: Config, back: Config, table: Table) -> str | None:
    """How a config differs from what is read `back` from a layout; None where nothing is lost."""
    lost = list(_differences(_comparable(config), _comparable(back)))
    unknown = [name for name in build_on_meta(config).state_dict() if table.origin(name) is None]
    if unknown:
        lost.append(f"it has no {unknown[0]}")
    more = f"; and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
    return "; ".join(lost[:_MOST_NAMED]) + more or None


def part_names(config: Config, table: Table) -> set[str]:
    """The foreign names of a config's tensors."""
    origins = map(table.origin, build_on_meta(config).state_dict())
    return {part for origin in origins if origin is not None for part in origin.parts}


def _differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in ours.items():
        other = theirs.get(name)
        if isinstance(value, dict) and isinstance(other, dict):
            yield from _differences(value, other, f"{prefix}{name}.")
        elif value != other:
            yield f"{prefix}{name} is {quote(value)}, it would become {quote(other)}"


def _comparable(config: Config) -> dict[str, Any]:
    """What makes a model what it is: dropout and the balance of experts are matters of training."""
    experts, hidden_dim = config.experts, config.hidden_dim
    if experts is not None:
        experts = replace(experts, balance=0.0)
        # Without a dense layer, no network has the config's own width.
        hidden_dim = hidden_dim if experts.dense_layers else experts.hidden_dim
    full = config.replace(
        hidden_dim=hidden_dim,
        experts=experts,
        n_decoder_layers=config.decoder_layers if config.family == "encoder_decoder" else None,
        dropout=Dropout(),
        output=replace(config.output, pooling="mean"),
    )
    return full.as_dict()
