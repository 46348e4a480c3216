"""Runs that begin with a saved model instead of random weights: fine-tuning.

    [model]
    from = "reader"                    any that `gf.load` reads
    dropout = { residual = 0.1 }       the rest of its shape is its own, and so is its tokenizer

What a task needs on top of it and it does not have, such as a matrix for classes, is new.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch

from glassformer.errors import ConfigError
from glassformer.models import Config, Dropout, build
from glassformer.models.checkpoints import load
from glassformer.training.recipe import Recipe

CHANGEABLE = ("from", "dropout")
FAMILIES = {
    "language": "decoder",
    "masked": "encoder",
    "translation": "encoder_decoder",
    "classification": "encoder",
}


def origin_of(recipe: Recipe) -> Any:
    """The saved model that a recipe begins with, or None."""
    name = recipe.model.get("from")
    if name is None:
        return None
    if not isinstance(name, str):
        raise ConfigError(f"model.from must name a saved model; got {name!r}.")
    fixed = [key for key in recipe.model if key not in CHANGEABLE]
    if fixed:
        raise ConfigError(
            f"A run that begins with a saved model keeps its shape; got model.{fixed[0]}. Leave it "
            "out, or begin with random weights, without model.from."
        )
    origin, family = _loaded(name), FAMILIES[recipe.task]
    if origin.config.family != family:
        raise ConfigError(
            f"The task {recipe.task!r} must have a model of the family {family!r}; {name} is of "
            f"{origin.config.family!r}."
        )
    several = origin.tokenizer.languages if recipe.task == "translation" else ()
    if several and any(not files.prefix for files in recipe.data.train):
        raise ConfigError(
            f"{name} writes {' and '.join(several)}; which one, must be told. Use --to "
            f'{several[0]}, or in a recipe prefix = "<{several[0]}> " for each of data.train.'
        )
    return origin


@lru_cache(maxsize=1)  # its tokenizer is asked for first, its weights later
def _loaded(name: str) -> Any:
    model: Any = load(name, dtype=torch.float32)
    if not isinstance(model.config, Config) or model.tokenizer is None:
        what = "an LSTM" if not isinstance(model.config, Config) else "a model without a tokenizer"
        raise ConfigError(f"model.from must be a Transformer with a tokenizer; {name} is {what}.")
    return model


def continued(recipe: Recipe, origin: Any, vocab_size: int, classes: tuple[str, ...]) -> Any:
    """A model with the saved weights, and with the recipe's dropout and classes."""
    config: Config = origin.config
    if vocab_size > config.vocab_size:
        raise ConfigError(
            f"Tokens must be those that {recipe.model['from']} knows, {config.vocab_size:,}; the "
            f"tokenizer has {vocab_size:,}. Leave tokenizer.path out."
        )
    dropout = Dropout(**{**config.as_dict()["dropout"], **recipe.model.get("dropout", {})})
    output = config.output
    if recipe.task in ("classification", "masked"):
        output = replace(output, masked_tokens=recipe.task == "masked", classes=classes)
    model: Any = build(replace(config, dropout=dropout, output=output))
    own, known = model.state_dict(), origin.state_dict()
    fits = {n: t for n, t in known.items() if n in own and t.shape == own[n].shape}
    model.load_state_dict({**own, **fits})
    return model
