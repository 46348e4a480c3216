"""The model of a recipe: a preset or a size of one's own, changed in a few places."""

from typing import Any

import torch
from torch import nn

from glassformer.errors import ConfigError
from glassformer.models import PRESETS, Config, build
from glassformer.models.baselines import RecurrentConfig
from glassformer.training.finetuning import FAMILIES, continued, origin_of
from glassformer.training.initialization import initialise
from glassformer.training.recipe import Recipe
from glassformer.training.tasks.task import Task

USUAL = {
    "language": "laptop-decoder",
    "masked": "laptop-encoder",
    "translation": "laptop-translator",
    "classification": "laptop-encoder",
}


def build_model(recipe: Recipe, task: Task) -> nn.Module:
    """The model of a recipe with its tokenizer, on the CPU; the seed decides about new weights."""
    torch.manual_seed(recipe.seed)
    size, classes = task.tokenizer.vocab_size, task.data.classes
    origin = origin_of(recipe)
    if origin is not None:
        model: Any = continued(recipe, origin, size, classes)
    else:
        model = build(model_config(recipe, size, classes))
        initialise(model, recipe.model.get("initial", "ours"))
    model.tokenizer, model.special = task.tokenizer, task.special
    return model


def model_config(
    recipe: Recipe, vocab_size: int, classes: tuple[str, ...] = ()
) -> Config | RecurrentConfig:
    """What `[model]` describes: the fields of a Config, on top of a preset where one is named.

    ::

        [model]
        preset = "laptop-translator"
        dim = 128
        dropout = { residual = 0.3 }
    """
    wish = {name: value for name, value in recipe.model.items() if name != "initial"}
    if wish.get("family") == "lstm":
        return recurrent_config(recipe, wish, vocab_size)
    name = wish.pop("preset", None)
    if name is not None and name not in PRESETS:
        raise ConfigError(f"model.preset must be one of {', '.join(PRESETS)}; got {name!r}.")
    family = FAMILIES[recipe.task]
    own = {"dim", "n_layers", "n_heads", "max_len"} <= set(wish)
    base: dict[str, Any] = {}
    if name is not None or not own:
        base = PRESETS[name or USUAL[recipe.task]].as_dict(derived=False)
        if base["family"] != family:
            raise ConfigError(
                f"The task {recipe.task!r} must have a model of the family {family!r}; "
                f"{name!r} is of {base['family']!r}."
            )
    for key, value in wish.items():
        inner = isinstance(value, dict) and isinstance(base.get(key), dict)
        base[key] = {**base[key], **value} if inner else value
    if recipe.task == "classification":
        base["output"] = {**base.get("output", {}), "masked_tokens": False, "classes": classes}
    return Config.from_dict({**base, "family": family, "vocab_size": vocab_size})


def recurrent_config(recipe: Recipe, wish: dict[str, Any], vocab_size: int) -> RecurrentConfig:
    """An LSTM instead, to compare with: `family = "lstm"`."""
    families = {"language": "lstm", "translation": "lstm_seq2seq"}
    if recipe.task not in families:
        raise ConfigError(f"An LSTM learns language or translation; got the task {recipe.task!r}.")
    values = {**wish, "family": families[recipe.task], "vocab_size": vocab_size}
    return RecurrentConfig.from_dict(values)
