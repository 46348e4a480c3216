"""Decoding on a CPU with the layers in C: encoding, prefill and each step are one call.

Embedding and positions are added by PyTorch, everything after them by native_stack.c.
"""

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.functional import Padding
from glassformer.generation.native_stack import NativeStack, refusal
from glassformer.generation.step import Step, normalize, widen_tables
from glassformer.models import Config, Decoder, DecoderWeights, EncoderDecoder
from glassformer.models.decoder_weights import StackWeights, encoder_refusal
from glassformer.models.stack import token_positions

MOST_ROWS = 256  # above, PyTorch's matrix products are faster

_known: WeakKeyDictionary[nn.Module, tuple[DecoderWeights, "NativeModel | None"]]
_known = WeakKeyDictionary()


class NativeModel(NamedTuple):
    """A decoder in C, and its encoder where there is one."""

    weights: DecoderWeights
    decoder: NativeStack
    encoder: NativeStack | None


def find_native(model: Decoder | EncoderDecoder) -> NativeModel | None:
    """A model in C, if it can be; kept with the model until its weights change."""
    weights = DecoderWeights.of(model)
    known = _known.get(model)
    if known is None or known[0] is not weights:
        known = weights, _build(weights)
        _known[model] = known
    return known[1]


def _build(weights: DecoderWeights) -> NativeModel | None:
    config, encoder = weights.config, weights.encoder
    stacks = (weights.stack,) if encoder is None else (weights.stack, encoder)
    if refusal(config, stacks, weights.head):
        return None
    return NativeModel(
        weights,
        NativeStack(config, weights.stack, causal=True, head=weights.head),
        None if encoder is None else NativeStack(config, encoder, causal=False),
    )


def encode(
    model: EncoderDecoder, native: NativeModel | None, source: Sequence[Sequence[int]]
) -> tuple[Float[Tensor, "B S C"], Padding | None] | None:
    """The encoder's output, and what hides the padding; None where modules must encode."""
    if native is None or native.encoder is None:
        return None
    lengths = torch.tensor([*map(len, source)])
    longest, config = int(lengths.max()), model.config
    if len(source) * longest > MOST_ROWS or encoder_refusal(model):
        return None
    weights = native.encoder.weights
    padded = torch.zeros(len(source), longest, dtype=torch.long)
    for row, text in zip(padded, source, strict=True):
        row[: len(text)] = torch.tensor(list(text))
    x = model.embedding(padded).detach()
    places = token_positions(padded, config, None)
    x = _place(x, weights, None if weights.positions is None else weights.positions(places))
    unequal = None if bool((lengths == longest).all()) else lengths
    memory = x.new_empty(1, len(source), longest, 2, config.n_kv_heads, config.head_dim)
    reading = native.encoder.begin(memory, lengths=unequal, turns=turn_tables(config, longest))
    reading.read(x, 0)
    return x, None if unequal is None else Padding(unequal)


class NativeStep(Step):
    """`Step` in C; it can also read several tokens of each row at once."""

    def __init__(
        self,
        native: NativeModel,
        *,
        batch: int,
        capacity: int,
        missing: Int[Tensor, " B"] | None = None,
    ) -> None:
        super().__init__(native.weights, batch=batch, capacity=capacity, missing=missing)
        turns = turn_tables(native.weights.config, capacity)
        self.reading = native.decoder.begin(self.memory, missing=missing, turns=turns)

    def read_context(
        self, context: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None, copies: int
    ) -> None:
        self.reading.read_context(context.contiguous(), lengths, copies)

    def keep(self, rows: Int[Tensor, " n"], length: int) -> None:
        super().keep(rows, length)
        self.reading = self.reading.keep(self.memory, rows, self.missing)

    def __call__(self, tokens: Int[Tensor, " B"], length: int) -> Float[Tensor, "B V"]:
        return self.read(tokens[:, None], length)

    def read(self, tokens: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B V"]:
        """The logits after T more tokens in each row; `length` tokens were read before."""
        weights, T = self.weights, tokens.shape[1]
        x = F.embedding(tokens, weights.embedding)
        if weights.embedding_scale != 1.0:
            x = x * weights.embedding_scale
        added = None
        if self.added is not None:
            added = self.added[length : length + T]
            if self.missing is not None:
                places = torch.arange(length, length + T) - self.missing[:, None]
                added = self.added[places.clamp(min=0)]
        logits = self.reading.read(_place(x, weights.stack, added), length)
        assert logits is not None
        return logits


def turn_tables(config: Config, n: int) -> tuple[Tensor, Tensor] | None:
    """Rotary tables (n, D) of the places from 0 on, as the C code multiplies by them."""
    if config.positions.kind != "rotary":
        return None
    cos, sin = config.rotary().tables(torch.arange(n))
    wide = widen_tables(cos, sin, config.positions.layout)
    return wide[0].float().contiguous(), wide[1].float().contiguous()


def _place(
    x: Float[Tensor, "B T C"], weights: StackWeights, added: Tensor | None
) -> Float[Tensor, "B T C"]:
    if added is not None:
        x = x + added.detach().to(x.dtype)
    if weights.embedding_norm is not None:
        x = normalize(x, weights.embedding_norm)
    return x.contiguous()
