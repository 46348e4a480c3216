"""Fine-tuning: runs that start from a saved model instead of random weights.

    [model]
    from = "reader"                    any model that `gf.load` reads
    dropout = { residual = 0.1 }       other settings and the tokenizer stay as they are
    lora = { rank = 8 }                train low-rank adapters alone, on targets = ["qkv"]

What the task needs and the model lacks, such as a classification head, is initialized afresh.
"""

from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import torch

from glassformer.errors import ConfigError
from glassformer.models import Config, Dropout, add_lora, build
from glassformer.models.checkpoints import load
from glassformer.models.lora import LoRA
from glassformer.settings import as_plain, quote, read_settings
from glassformer.training.recipe import Recipe

CHANGEABLE = ("from", "dropout", "lora")
FAMILIES = {
    "language": "decoder",
    "masked": "encoder",
    "translation": "encoder_decoder",
    "classification": "encoder",
}


def load_base_model(recipe: Recipe) -> Any:
    """Load the model that a recipe fine-tunes; None if it starts from random weights."""
    name = recipe.model.get("from")
    if name is None:
        return None
    if not isinstance(name, str):
        raise ConfigError(f"model.from must name a saved model; got {quote(name)}.")
    fixed = [key for key in recipe.model if key not in CHANGEABLE]
    if fixed:
        raise ConfigError(
            f"Fine-tuning keeps the shape of the saved model; got model.{fixed[0]}. Remove it, or "
            "remove model.from to start from random weights."
        )
    base, family = _load(name), FAMILIES[recipe.task]
    if base.config.family != family:
        raise ConfigError(
            f"The task {recipe.task!r} needs a model of the family {family!r}; {name} is of "
            f"{base.config.family!r}."
        )
    several = base.tokenizer.languages if recipe.task == "translation" else ()
    if several and any(not files.prefix for files in recipe.data.train):
        raise ConfigError(
            f"{name} translates into {' and '.join(several)}; say which. Use --to "
            f'{several[0]}, or in a recipe prefix = "<{several[0]}> " for each of data.train.'
        )
    return base


@lru_cache(maxsize=1)  # needed twice: the tokenizer for the data, the weights for the model
def _load(name: str) -> Any:
    model: Any = load(name, dtype=torch.float32)
    if not isinstance(model.config, Config) or model.tokenizer is None:
        what = "an LSTM" if not isinstance(model.config, Config) else "a model without a tokenizer"
        raise ConfigError(f"model.from must be a Transformer with a tokenizer; {name} is {what}.")
    return model


def build_finetuned(recipe: Recipe, base: Any, vocab_size: int, classes: tuple[str, ...]) -> Any:
    """A model with the weights of `base`, and with the recipe's dropout and classes."""
    config: Config = base.config
    if vocab_size > config.vocab_size:
        raise ConfigError(
            f"{recipe.model['from']} knows {config.vocab_size:,} tokens, but the tokenizer has "
            f"{vocab_size:,}. Remove tokenizer.path."
        )
    changes = recipe.model.get("dropout", {})
    read_settings(Dropout, changes, "The recipe", "model.dropout.")  # rejects invalid settings
    dropout = Dropout(**as_plain(config.dropout) | changes)
    output = config.output
    if recipe.task in ("classification", "masked"):
        output = replace(output, masked_tokens=recipe.task == "masked", classes=classes)
    model: Any = build(replace(config, dropout=dropout, output=output))
    own, known = model.state_dict(), base.state_dict()
    fits = {n: t for n, t in known.items() if n in own and t.shape == own[n].shape}
    model.load_state_dict({**own, **fits})
    if "lora" in recipe.model:
        settings = read_settings(LoRA, recipe.model["lora"], "The recipe", "model.lora.")
        add_lora(model, **asdict(settings))
        for name, parameter in model.named_parameters():
            if name in own and name not in fits:  # a new head is trained whole
                parameter.requires_grad_(True)
    return model
