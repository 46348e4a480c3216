"""The model of a recipe: a preset, custom sizes, or a preset with changes."""

from dataclasses import fields
from functools import partial
from typing import Any, get_args

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from glassformer.errors import ConfigError
from glassformer.layers import Block
from glassformer.models import PRESETS, Config, build
from glassformer.models.baselines import RecurrentConfig
from glassformer.models.learning_forward import has_own_forward, replace_while_learning
from glassformer.settings import check_choice, check_names, read_settings
from glassformer.training.cpu_products import replace_products
from glassformer.training.finetuning import FAMILIES, build_finetuned, load_base_model
from glassformer.training.float8 import use_float8
from glassformer.training.half_precision.layers import replace_layers
from glassformer.training.initialization import Initial, initialize_weights
from glassformer.training.precision import halve_residual
from glassformer.training.recipe import ComputeSettings, Recipe
from glassformer.training.tasks.task import Task

USUAL = {
    "language": "laptop-decoder",
    "masked": "laptop-encoder",
    "translation": "laptop-translator",
    "classification": "laptop-encoder",
}


def build_model(recipe: Recipe, task: Task) -> nn.Module:
    """The model of a recipe with its tokenizer, on the CPU; the seed determines new weights."""
    torch.manual_seed(recipe.seed)
    size, classes = task.tokenizer.vocab_size, task.data.classes
    base = load_base_model(recipe)
    if base is not None:
        model: Any = build_finetuned(recipe, base, size, classes)
    elif "lora" in recipe.model:
        raise ConfigError("LoRA adapts a saved model; got model.lora without model.from.")
    else:
        model = build(model_config(recipe, size, classes))
        initialize_weights(model, recipe.model.get("initial", "ours"))
    model.tokenizer, model.special = task.tokenizer, task.special
    # Of other texts, those of the model that is fine-tuned.
    task.tokenizer.coverage = task.tokenizer.shortlist = None
    return model


def model_config(
    recipe: Recipe, vocab_size: int, classes: tuple[str, ...] = ()
) -> Config | RecurrentConfig:
    """The config that `[model]` describes: the fields of a Config, on top of a preset's.

    ::

        [model]
        preset = "laptop-translator"
        dim = 128
        dropout = { residual = 0.3 }
    """
    wanted = {name: value for name, value in recipe.model.items() if name != "initial"}
    check_choice(recipe.model.get("initial", "ours"), get_args(Initial), "model.initial")
    if wanted.get("family") == "lstm":
        return recurrent_config(recipe, wanted, vocab_size)
    known = [each.name for each in fields(Config)]
    check_names(wanted, [*known, "preset", "initial", "from"], "The recipe", "model.")
    name = wanted.pop("preset", None)
    if name is not None:
        check_choice(name, PRESETS, "model.preset")
    family = FAMILIES[recipe.task]
    own = {"dim", "n_layers", "n_heads", "max_len"} <= set(wanted)
    base: dict[str, Any] = {}
    if name is not None or not own:
        base = PRESETS[name or USUAL[recipe.task]].as_dict(derived=False)
        if base["family"] != family:
            raise ConfigError(
                f"The task {recipe.task!r} needs a model of the family {family!r}; "
                f"{name!r} is of {base['family']!r}."
            )
    for key, value in wanted.items():
        inner = isinstance(value, dict) and isinstance(base.get(key), dict)
        base[key] = {**base[key], **value} if inner else value
    if recipe.task == "classification":
        base["output"] = {**base.get("output", {}), "masked_tokens": False, "classes": classes}
    values = {**base, "family": family, "vocab_size": vocab_size}
    return read_settings(Config, values, "The recipe", "model.")


def recurrent_config(recipe: Recipe, wanted: dict[str, Any], vocab_size: int) -> RecurrentConfig:
    """An LSTM baseline: `family = "lstm"`."""
    families = {"language": "lstm", "translation": "lstm_seq2seq"}
    if recipe.task not in families:
        raise ConfigError(f"An LSTM supports language and translation; got task {recipe.task!r}.")
    values = {**wanted, "family": families[recipe.task], "vocab_size": vocab_size}
    return read_settings(RecurrentConfig, values, "The recipe", "model.")


def apply_compute(settings: ComputeSettings, model: nn.Module, device: torch.device) -> None:
    """What changes in a model that is trained by these settings."""
    if settings.precision == "fp8":
        use_float8(model, device)
    if device.type == "cuda" and settings.precision != "fp32":
        replace_layers(model)
    if settings.residual == "half":
        halve_residual(model)
    if device.type == "cpu" and settings.precision == "fp32":
        replace_products(model)
    if settings.checkpointing:
        recompute_blocks(model)


def recompute_blocks(model: nn.Module) -> None:
    """Activation checkpointing: blocks recompute their activations in the backward pass."""
    for part in model.modules():
        if isinstance(part, Block):
            forward = partial(checkpoint, part.forward, use_reentrant=False)
            if has_own_forward(part):
                part.forward = forward
            else:
                replace_while_learning(part, forward)
