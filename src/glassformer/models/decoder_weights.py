"""The tensors of a decoder by their role, for code that decodes without calling modules.

`refusal` says why a model must be called as it is: somebody listens to its modules or has changed
them, or it has a part that is not described here.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from glassformer.functional.positions.rotary_scalings import NTKScaling
from glassformer.functional.quantized import QuantizedWeight
from glassformer.layers import (
    Block,
    Core,
    CrossAttention,
    FeedForward,
    LearnedPositions,
    LoRALinear,
    RMSNorm,
    SelfAttention,
    SinusoidalPositions,
    TokenEmbedding,
)
from glassformer.models.config import Config
from glassformer.models.decoder import Decoder
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.learning_forward import has_own_forward
from glassformer.models.module_list import list_modules
from glassformer.models.output_heads import NextTokenHead
from glassformer.models.stack import Stack

_PARTS = (
    *(Decoder, EncoderDecoder, Stack, Block, SelfAttention, CrossAttention, Core, FeedForward),
    *(TokenEmbedding, LearnedPositions, SinusoidalPositions, NextTokenHead, RMSNorm),
    *(nn.LayerNorm, nn.Linear, nn.ModuleList),
)
# Watching replaces `forward` on the class: what it was before anybody could watch.
_FORWARDS = {part: part.forward for part in _PARTS}


class Linear(NamedTuple):
    """A matrix (out, in), perhaps a QuantizedWeight, and its bias; perhaps a copy as (in, out)."""

    weight: Tensor
    bias: Tensor | None
    transposed: Tensor | None = None


class Norm(NamedTuple):
    """A LayerNorm, or an RMSNorm where `centered` is false."""

    weight: Tensor
    bias: Tensor | None
    eps: float
    centered: bool


class AttentionWeights(NamedTuple):
    """Self-attention: its norm, the fused projection of q, k and v, norms of heads, the output."""

    norm: Norm
    qkv: Linear
    q_norm: Norm | None
    k_norm: Norm | None
    out: Linear


class CrossWeights(NamedTuple):
    norm: Norm
    q: Linear
    kv: Linear
    out: Linear


class FeedForwardWeights(NamedTuple):
    norm: Norm
    up: Linear
    down: Linear


class LayerWeights(NamedTuple):
    attention: AttentionWeights
    cross: CrossWeights | None
    feed_forward: FeedForwardWeights


class StackWeights(NamedTuple):
    """Everything between embedded tokens and hidden states."""

    positions: LearnedPositions | SinusoidalPositions | None  # added to the embedding
    embedding_norm: Norm | None
    layers: tuple[LayerWeights, ...]
    final_norm: Norm | None

    @classmethod
    def of(cls, stack: Stack) -> "StackWeights":
        """The weights of an encoder or a decoder; they are the model's own tensors."""
        config = stack.config
        added = config.positions.kind in ("learned", "sinusoidal")
        return cls(
            positions=stack.positions if added else None,
            embedding_norm=_read_norm(stack.embedding_norm) if config.norms.embedding else None,
            layers=tuple(_read_layer(block) for block in stack.blocks),  # type: ignore[arg-type]
            final_norm=_read_norm(stack.final_norm) if config.norms.final else None,
        )

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The matrices of all layers."""
        parts = chain.from_iterable(part for layer in self.layers for part in layer if part)
        return tuple(each for each in parts if isinstance(each, Linear))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters."""
        norms = [norm for norm in (self.embedding_norm, self.final_norm) if norm is not None]
        rest = chain.from_iterable(part for layer in self.layers for part in layer if part)
        found: list[Tensor | None] = []
        if isinstance(self.positions, LearnedPositions):
            found.append(self.positions.weight)
        for part in chain(norms, (each for each in rest if each is not None)):
            found += [part.weight, part.bias]
        return tuple(each for each in found if each is not None)


class DecoderWeights(NamedTuple):
    """Everything between a token and the logits after it, and the encoder where there is one."""

    config: Config
    embedding: Tensor  # (V, C)
    embedding_scale: float
    stack: StackWeights
    head: Linear
    encoder: StackWeights | None

    @classmethod
    def of(cls, model: Decoder | EncoderDecoder) -> "DecoderWeights":
        """The weights of a model that is not refused: the model's own tensors, or fp8 as floats.

        The same object as before, unless the model has changed since.
        """
        known = _look_at(model)
        if not known.weights:
            known.weights.append(cls._read(model))
        return known.weights[0]

    @classmethod
    def _read(cls, model: Decoder | EncoderDecoder) -> "DecoderWeights":
        config = model.config
        embedding = _read_matrix(model.embedding.weight)
        matrix = embedding if config.output.tied else _read_matrix(model.head.weight)
        return cls(
            config=config,
            embedding=embedding,
            embedding_scale=model.embedding.scale,
            stack=StackWeights.of(model.decoder),
            head=Linear(matrix, model.head.bias.detach() if config.output.bias else None),
            encoder=StackWeights.of(model.encoder) if isinstance(model, EncoderDecoder) else None,
        )

    def map_linear(self, change: Callable[[Linear], Linear]) -> "DecoderWeights":
        """A copy in which every matrix that a step multiplies by is replaced."""

        def replace(part: tuple) -> tuple:
            changed = (change(each) if isinstance(each, Linear) else each for each in part)
            return type(part)(*changed)  # type: ignore[call-arg]

        layers = (
            LayerWeights(*(None if part is None else replace(part) for part in layer))  # type: ignore[arg-type]
            for layer in self.stack.layers
        )
        return self._replace(
            stack=self.stack._replace(layers=tuple(layers)), head=change(self.head)
        )

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters of one step."""
        found = (self.embedding, self.head.weight, self.head.bias, *self.stack.tensors)
        return tuple(each for each in found if each is not None)


class _Known(NamedTuple):
    """What was read of a model, and its state then."""

    state: tuple
    kinds: frozenset[tuple[torch.device, torch.dtype]]  # of the parameters
    fault: str | None
    weights: list[DecoderWeights]  # empty until somebody asks


_known: WeakKeyDictionary[nn.Module, _Known] = WeakKeyDictionary()


def _look_at(model: nn.Module) -> _Known:
    """What is known of a model's parameters; it is found out anew once they have changed."""
    modules = list_modules(model)
    state = _describe_state(modules)
    known = _known.get(model)
    if known is None or known.state != state:
        known = _known[model] = _Known(state, *_check_tensors(modules), [])
    return known


def _describe_state(modules: Iterable[tuple[str, nn.Module]]) -> tuple:
    """Address and version of each parameter, and what else `DecoderWeights` reads of modules."""
    state: list = []
    for _, module in modules:
        for parameter in module._parameters.values():
            if parameter is None:
                continue
            state.append(id(parameter))
            stored = parameter.numbers if type(parameter) is QuantizedWeight else parameter
            # Other kinds are refused, and may have neither an address nor a version.
            if type(stored) in (Tensor, nn.Parameter) and not stored.is_inference():
                state += (stored.data_ptr(), stored._version)
        if isinstance(module, RMSNorm | nn.LayerNorm):
            state.append(module.eps)
        elif isinstance(module, TokenEmbedding):
            state.append(module.scale)
    return tuple(state)


def _check_tensors(
    modules: Iterable[tuple[str, nn.Module]],
) -> tuple[frozenset[tuple[torch.device, torch.dtype]], str | None]:
    kinds: set[tuple[torch.device, torch.dtype]] = set()
    for path, module in modules:
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if type(parameter) not in (nn.Parameter, QuantizedWeight):
                return frozenset(), f"{path}.{name} is a {type(parameter).__name__}"
            stored = parameter.numbers if type(parameter) is QuantizedWeight else parameter
            if stored.is_inference():
                fault = f"{path}.{name} is an inference tensor, whose changes are not counted"
                return frozenset(), fault
            kinds.add((parameter.device, parameter.dtype))
    fault = None if len(kinds) == 1 else "the parameters differ in dtype or device"
    return frozenset(kinds), fault


def refusal(model: nn.Module) -> str | None:
    """Why a model cannot be decoded by its weights alone; None if it can."""
    if type(model) is not Decoder and type(model) is not EncoderDecoder:
        return f"{type(model).__name__} is not a decoder of ours"
    if model.training:
        return "the model is in training mode"
    if any(part.forward is not forward for part, forward in _FORWARDS.items()):
        return "somebody listens to the modules"
    if torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks:
        return "there are hooks on all modules"
    if model.config.experts is not None:
        return "its feed-forward networks are mixtures of experts"
    if model.config.latent is not None:
        return "its attention caches latents"
    if not model.config.norms.first:
        return "the first block has no norm before attention"
    # The encoder may be called as it is, whatever listens to it: see `encoder_refusal`.
    decoder = (each for each in list_modules(model) if not each[0].startswith("encoder"))
    return _refuse_modules(decoder) or _refuse_tensors(model) or _refuse_config(model.config)


def encoder_refusal(model: EncoderDecoder) -> str | None:
    """Why the encoder of a model that is not refused must be called by its modules."""
    return _refuse_modules(each for each in list_modules(model) if each[0].startswith("encoder"))


def _refuse_modules(modules: Iterable[tuple[str, nn.Module]]) -> str | None:
    for path, module in modules:
        if isinstance(module, LoRALinear):
            return f"{path} has a LoRA adapter"
        if type(module) not in _FORWARDS or has_own_forward(module):
            return f"{path or 'the model'} is no module of ours"
        if module._forward_hooks or module._forward_pre_hooks:
            return f"there are hooks on {path or 'the model'}"
    return None


def _refuse_tensors(model: nn.Module) -> str | None:
    known = _look_at(model)
    if any(torch.is_autocast_enabled(device.type) for device, _ in known.kinds):
        return "autocast is enabled"
    return known.fault


def _refuse_config(config: Config) -> str | None:
    if config.positions.kind in ("alibi", "relative"):
        return f"positions of kind {config.positions.kind!r} are a bias"
    if config.global_layers:
        return "some layers have no window"
    if config.softcap is not None:
        return "scores are soft-capped"
    if config.attention_scale is not None and config.attention_scale <= 0:
        return f"attention_scale={config.attention_scale} is not positive"
    scaling = config.positions.scaling
    if isinstance(scaling, NTKScaling) and scaling.original_len is not None:
        return "the rotary frequencies depend on the length"
    return None


def _read_layer(block: Block) -> LayerWeights:
    attention, feed_forward = block.attention, block.feed_forward
    # As `refusal` makes sure.
    assert isinstance(attention, SelfAttention) and isinstance(feed_forward, FeedForward)
    heads = (
        (_read_norm(attention.q_norm), _read_norm(attention.k_norm))
        if attention.has_head_norm
        else (None, None)
    )
    return LayerWeights(
        AttentionWeights(
            _read_norm(block.attention_norm),
            _read_linear(attention.qkv),
            *heads,
            _read_linear(attention.out),
        ),
        _read_cross(block.cross, block.cross_norm) if block.has_cross else None,
        FeedForwardWeights(
            _read_norm(block.feed_forward_norm),
            _read_linear(feed_forward.up),
            _read_linear(feed_forward.down),
        ),
    )


def _read_cross(cross: CrossAttention, norm: nn.Module) -> CrossWeights:
    return CrossWeights(
        _read_norm(norm), _read_linear(cross.q), _read_linear(cross.kv), _read_linear(cross.out)
    )


def _read_linear(linear: nn.Linear) -> Linear:
    bias = None if linear.bias is None else linear.bias.detach()
    return Linear(_read_matrix(linear.weight), bias)


def _read_matrix(parameter: Tensor) -> Tensor:
    """A matrix as it is, but fp8 as floats on a CPU, where converting takes longer than reading."""
    weight = parameter.detach()
    if isinstance(weight, QuantizedWeight) and weight.kind == "fp8" and weight.is_cpu:
        return weight.float_values()
    return weight


def _read_norm(norm: nn.Module) -> Norm:
    if isinstance(norm, RMSNorm):
        return Norm(norm.weight.detach(), None, norm.eps, centered=False)
    assert isinstance(norm, nn.LayerNorm)
    bias = None if norm.bias is None else norm.bias.detach()
    return Norm(norm.weight.detach(), bias, norm.eps, centered=True)
