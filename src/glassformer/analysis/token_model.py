"""A model that reads tokens, whoever made it: where it attends, and how it is run on any tokens."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from glassformer.errors import TraceError
from glassformer.layers import CrossAttention, LatentAttention, SelfAttention
from glassformer.models import EncoderDecoder
from glassformer.tracing.compilation import strip_wrappers
from glassformer.tracing.layout import Place
from glassformer.tracing.model_lookup import OURS, ModuleTree, find_model


class TokenModel:
    """A model of glassformer or transformers, with its attention modules by place."""

    def __init__(self, model: nn.Module, caller: str) -> None:
        if not isinstance(model, nn.Module):
            raise TraceError(
                f"{caller} takes a model, a torch.nn.Module; got {type(model).__name__}."
            )
        found = find_model(ModuleTree(model))
        if found is None:
            raise TraceError(
                f"{caller} needs a model of glassformer or transformers; {type(model).__name__} "
                "has attention modules of PyTorch."
            )
        self.model: Any = found
        self.caller, self.name = caller, type(found).__name__
        self.tree = ModuleTree(found)
        self.is_ours = isinstance(found, OURS)
        self.has_source = isinstance(found, EncoderDecoder) or bool(
            getattr(found.config, "is_encoder_decoder", False)
        )
        reads = getattr(found, "main_input_name", "input_ids")
        if reads != "input_ids":
            raise TraceError(
                f"{caller} needs a model that reads tokens; {self.name} reads {reads}."
            )
        self.places = self._find_places()

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def vocab_size(self) -> int:
        config = self.model.config
        config = config if self.is_ours else config.get_text_config(decoder=True)
        return int(config.vocab_size)

    @property
    def begin(self) -> int | None:
        """The token that precedes a text, if the model has one."""
        if self.is_ours:
            special = self.model.special
            return special.start[0] if special.start else special.begin
        config = self.model.config
        names = ("decoder_start_token_id", "bos_token_id") if self.has_source else ("bos_token_id",)
        found = [getattr(config, name, None) for name in names]
        return next((each for each in found if isinstance(each, int)), None)

    @property
    def special(self) -> set[int]:
        """Tokens that models treat in a way of their own."""
        if self.is_ours:
            given = self.model.special
            found = [given.begin, given.pad, given.mask, *given.end, *given.start, *given.never]
        else:
            names = ("bos", "eos", "pad", "sep", "cls", "mask", "unk", "decoder_start")
            found = [getattr(self.model.config, f"{name}_token_id", None) for name in names]
        return {each for each in found if isinstance(each, int)}

    @property
    def max_len(self) -> int | None:
        """The longest text that has positions, where the model says so."""
        config = self.model.config
        if self.is_ours:
            return int(config.max_len)
        config = config.get_text_config(decoder=True)
        names = ("max_position_embeddings", "n_positions", "max_seq_len")
        found = [getattr(config, name, None) for name in names]
        return next((each for each in found if isinstance(each, int)), None)

    @property
    def plain_tokens(self) -> Int[Tensor, " N"]:
        """The tokens that are not special."""
        special = self.special
        return torch.tensor([i for i in range(self.vocab_size) if i not in special])

    def draw(self, *shape: int, seed: int = 0) -> Int[Tensor, "..."]:
        """Random tokens, none of them special."""
        known = self.plain_tokens
        generator = torch.Generator().manual_seed(seed)
        return known[torch.randint(len(known), shape, generator=generator)].to(self.device)

    def __call__(self, tokens: Int[Tensor, "B L"]) -> Any:
        """One pass without a cache; a model with an encoder reads the same text there."""
        if isinstance(self.model, EncoderDecoder):
            return self.model(tokens, tokens)
        if self.is_ours:
            return self.model(tokens)
        given: dict[str, Any] = {"input_ids": tokens}
        if self.has_source:
            given["decoder_input_ids"] = tokens
        if "use_cache" in inspect.signature(self.model.forward).parameters:
            given["use_cache"] = False
        return self.model(**given)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Without gradients and dropout; each module returns to the mode in which it was."""
        modes = {module: module.training for module in self.tree.paths}
        self.model.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            for module, mode in modes.items():
                module.training = mode

    def _find_places(self) -> dict[nn.Module, Place]:
        """The modules that read the stream and attend, and the names of their sites."""
        if not self.is_ours:
            from glassformer.tracing.sources.transformers_layout import TransformersLayout

            return dict(TransformersLayout.of(self.tree).places)
        places: dict[nn.Module, Place] = {}
        for module, path in self.tree.paths.items():
            if isinstance(module, SelfAttention | LatentAttention | CrossAttention):
                stack, _, layer, *_ = strip_wrappers(path).split(".")
                is_cross = isinstance(module, CrossAttention)
                kind = "cross" if is_cross else "self"
                name = f"{stack}.{layer}.{kind}"
                places[module] = Place(name, stack, int(layer), is_cross)
        return places
