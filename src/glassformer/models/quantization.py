"""Quantization: a copy of a model with matrices of one byte a number, which are read faster.

Quantized are the matrices that a token is multiplied with: those of `nn.Linear`, those of experts,
and the output matrix, which is the embedding where tied. Norms, biases, positions and an embedding
of its own stay as they are, and so do routers, where a rounding could choose another expert.
"""

from typing import Any, TypeVar

from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional.quantized import KINDS, QuantizedWeight
from glassformer.layers import ExpertLinear
from glassformer.models.decoder import Decoder
from glassformer.models.encoder import Encoder
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.lora import list_adapters
from glassformer.models.presets import build

M = TypeVar("M", Encoder, Decoder, EncoderDecoder)


def quantize(model: M, kind: str = "int8") -> M:
    """A copy with matrices of 8 bits and a float32 scale for each of their rows, in eval mode.

    "int8" is for CPUs and GPUs. "fp8" (e4m3) is for GPUs; on a CPU it is decoded as floats that are
    made once. Its error is relative to each number, so an outlier does not cost the rest of its
    row. The copy generates, translates, is watched and saved as any other model; it is not for
    training.

    >>> import glassformer as gf
    >>> translator = gf.quantize(gf.load("translator"), "int8")
    >>> gf.translate(translator, "Where is the station?", to="fr")
    'Où se trouve la gare ?'
    """
    if kind not in KINDS:
        raise ConfigError(f"Weights can be quantized to {' or '.join(KINDS)}; got {kind!r}.")
    if type(model) not in (Encoder, Decoder, EncoderDecoder):
        raise ConfigError(
            f"Encoders, decoders and encoder-decoders can be quantized; got {type(model).__name__}."
        )
    if list_adapters(model):
        raise ConfigError("LoRA adapters must be merged before weights are quantized: merge_lora.")
    if (present := weight_kind(model)) in KINDS and present != kind:
        raise ConfigError(
            f"Weights are quantized from floats; these are {present} already. Quantize the model "
            f"that they were made from to {kind}."
        )
    names = set(list_matrices(model))
    state: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        is_new = name in names and not isinstance(tensor, QuantizedWeight)
        state[name] = QuantizedWeight.of(tensor, kind) if is_new else tensor.clone()
    copy: Any = build(model.config, device="meta")
    assign_state(copy, state)
    copy.name, copy.tokenizer, copy.special = model.name, model.tokenizer, model.special
    return copy.eval()


def assign_state(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Give a model on the meta device its tensors; quantized ones are never trained."""
    model.load_state_dict(state, assign=True)
    for parameter in model.parameters():
        if isinstance(parameter, QuantizedWeight):
            parameter.requires_grad_(False)


def list_matrices(model: nn.Module) -> list[str]:
    """The names of the weights that `quantize` changes."""
    kinds = (nn.Linear, ExpertLinear)
    names = [f"{path}.weight" for path, part in model.named_modules() if type(part) in kinds]
    output: Any = model.config.output  # type: ignore[union-attr]
    if isinstance(model, Encoder):
        return [*names, "embedding.weight"] if output.masked_tokens else names
    return [*names, "embedding.weight" if output.tied else "head.weight"]


def weight_kind(model: nn.Module) -> str:
    """What the matrices are: "int8", "fp8", or the dtype of the model.

    >>> import glassformer as gf
    >>> weight_kind(gf.load("writer")), weight_kind(gf.quantize(gf.load("writer")))
    ('float32', 'int8')
    """
    for parameter in model.parameters():
        if isinstance(parameter, QuantizedWeight):
            return parameter.kind
    return str(next(model.parameters()).dtype).removeprefix("torch.")
