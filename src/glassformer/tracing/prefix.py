"""The tokens before the first change: a causal model need not read them again.

What they leave to later tokens are their keys and values, and a trace holds those. Put into a cache
of the model's own kind, they let the model continue from there. Whether it does is proved once, on
the unchanged run; where it does not, every token is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.functional import Causal, Explicit, Mask, Window
from glassformer.functional.masks import And
from glassformer.models import Decoder
from glassformer.tracing.interventions.numbers import resolve_numbers
from glassformer.tracing.interventions.values import (
    Ablate,
    Freeze,
    Intervention,
    Patch,
    Scale,
    Steer,
)
from glassformer.tracing.trace import Run

LEAST = 32  # tokens: shorter texts are read at once, which gives the bits of the run


@dataclass(eq=False, frozen=True)
class Prefix:
    """The keys and values of every layer, and how the model is called to continue them."""

    model: nn.Module
    tokens: Tensor
    name: str | None  # of the argument that holds the tokens; None: the first one
    options: dict[str, Any]
    pairs: list[tuple[Tensor, Tensor]]

    @classmethod
    def of(
        cls,
        run: Run,
        model: nn.Module,
        args: Sequence[Any],
        options: dict[str, Any],
        n_layers: int,
    ) -> "Prefix | None":
        """None for what is no plain call of a decoder, or was not recorded whole."""
        if len(run.streams) != 1:
            return None
        if isinstance(model, Decoder) and model.config.latent is not None:
            return None  # its cache holds latents, not the keys and values of the sites
        (stack,) = run.streams
        name = None if args else "input_ids"
        tokens = args[0] if args else options.get("input_ids")
        if len(args) > 1 or not isinstance(tokens, Tensor) or tokens.shape[1] < LEAST:
            return None
        kept = {key: value for key, value in options.items() if key not in (name, "attention_mask")}
        mask = options.get("attention_mask")
        if any(isinstance(value, Tensor) for value in kept.values()) or not (
            mask is None or (mask.ndim == 2 and bool(mask.all()))
        ):
            return None
        sites = [run.sites.get(f"{stack}.{layer}.self") for layer in range(n_layers)]
        pairs = [(site.k, site.v) for site in sites if site is not None and hides_future(site.mask)]
        if len(pairs) < n_layers or any(k.shape[2] != tokens.shape[1] for k, _ in pairs):
            return None
        return cls(model, tokens, name, kept, pairs)

    def call(self, start: int, n: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments by which n sequences are read from `start` on."""
        device = self.tokens.device
        past = [
            tuple(each[:, :, :start].to(device).expand(n, -1, -1, -1) for each in pair)
            for pair in self.pairs
        ]
        options = dict(self.options)
        if isinstance(self.model, Decoder):
            options["cache"] = cache = self.model.new_cache(n)
            for layer, (k, v) in zip(cache.layers, past, strict=True):
                layer.append(k, v)
        else:
            # Imported here: only a model of transformers needs it.
            from transformers import DynamicCache

            options["past_key_values"] = theirs = DynamicCache()
            for i, (k, v) in enumerate(past):
                theirs.update(k, v, i)
        rest = self.tokens[:, start:].expand(n, -1)
        return ((rest,), options) if self.name is None else ((), {**options, self.name: rest})


def hides_future(mask: Mask | None) -> bool:
    """Whether no query may attend to a later key: a change leaves what precedes it alone."""
    match mask:
        case Causal(offset=None | 0) | Window(right=0, offset=None | 0):
            return True
        case And():
            return hides_future(mask.a) or hides_future(mask.b)
        case Explicit():
            return not bool(torch.triu(mask.tensor, 1).any())
    return False


def first_changed(edits: Sequence[Intervention], length: int) -> int:
    """The first position that differs under these changes; 0 where it may be any."""
    return min((_first_position(edit, length) for edit in edits), default=0)


def _first_position(edit: Intervention, length: int) -> int:
    if isinstance(edit, Ablate) and edit.how != "zero" and edit.of is None:
        return 0  # its value is made of all positions
    if not isinstance(edit, Patch | Scale | Steer | Freeze | Ablate) or edit.positions is None:
        return 0
    return min(resolve_numbers(edit.positions, length, "positions"), default=0)


def is_continued(found: Tensor, recorded: Tensor) -> bool:
    """Whether a run that continued the prefix is the recorded one, within rounding.

    Number by number: a few features are far larger than all others, and would hide a difference.
    """
    share = max(3e-4, 16 * torch.finfo(recorded.dtype).eps)
    size = recorded.abs()
    usual = size.flatten(1).median(1).values[:, None, None]
    return bool(((found - recorded).abs() <= share * (size + usual)).all())
