"""Products and activations of a few rows on a CPU, by what is fastest for a decoding step.

On Arm, PyTorch multiplies a few rows slowly by a matrix that lies as (out, in): up to eight rows
it packs the matrix anew each time, with more it hands over to a library with threads of its own.
A transposed copy takes 0.1 to 0.8 of the time, and its memory once. One row is fastest as it is;
other processors gain nothing by a copy.
"""

import platform
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.functional.quantized import QuantizedWeight, quantized_linear
from glassformer.models import Decoder, DecoderWeights, EncoderDecoder
from glassformer.models.decoder_weights import Linear

_IS_ARM = platform.machine() in ("aarch64", "arm64")
_MOST = 1 << 29  # bytes of all copies of a model: above, they may not fit

_prepared: WeakKeyDictionary[torch.nn.Module, tuple[DecoderWeights, DecoderWeights]] = (
    WeakKeyDictionary()
)


def prepare_weights(model: Decoder | EncoderDecoder, batch: int) -> DecoderWeights:
    """The weights of a model, with transposed copies where `batch` rows are faster by them.

    Copies are kept with the model, and made anew once its weights have changed.
    """
    weights = DecoderWeights.of(model)
    size = sum(each.numel() * each.element_size() for each in weights.tensors)
    if batch == 1 or not _IS_ARM or size > _MOST:
        return weights
    known = _prepared.get(model)
    if known is None or known[0] is not weights:
        known = weights, weights.map_linear(_transpose)
        _prepared[model] = known
    return known[1]


def _transpose(linear: Linear) -> Linear:
    if isinstance(linear.weight, QuantizedWeight):
        return linear
    return linear._replace(transposed=linear.weight.t().contiguous())


def multiply(x: Float[Tensor, "B n"], linear: Linear) -> Float[Tensor, "B m"]:
    """x Wᵀ + b."""
    if isinstance(linear.weight, QuantizedWeight):
        return quantized_linear(x, linear.weight.numbers, linear.weight.scale, linear.bias)
    if linear.transposed is None:
        return F.linear(x, linear.weight, linear.bias)
    if linear.bias is None:
        return torch.mm(x, linear.transposed)
    return torch.addmm(linear.bias, x, linear.transposed)


def pad_outputs(linear: Linear, multiple: int) -> Linear:
    """A matrix with zeros below, for a multiple of outputs; one of bytes stays as it is."""
    more = -len(linear.weight) % multiple
    if not more or isinstance(linear.weight, QuantizedWeight):
        return linear
    bias = None if linear.bias is None else F.pad(linear.bias, (0, more))
    return Linear(F.pad(linear.weight, (0, 0, 0, more)), bias)


def gelu(x: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """GELU of a few numbers.

    PyTorch hands contiguous tensors to oneDNN, which takes longer to begin than to compute them; a
    transposed view it computes itself.
    """
    if x.numel() % 2 or not x.is_contiguous():
        return F.gelu(x)
    return F.gelu(x.view(2, -1).t()).t().reshape(x.shape)
