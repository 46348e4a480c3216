"""Decoding on a CPU with the layers in C: encoding, prefill and each step are one call.

So are the tokens of a text that is written greedily, and the candidates of a step of beam search.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.functional import Padding
from glassformer.generation.native_matrices import SelectedHead
from glassformer.generation.native_stack import NativeStack, Tables, refusal
from glassformer.generation.step import Step, normalize, widen_tables
from glassformer.layers import LearnedPositions
from glassformer.models import Decoder, DecoderWeights, EncoderDecoder
from glassformer.models.decoder_weights import StackWeights, encoder_refusal
from glassformer.models.decoder_weights import refusal as weights_refusal
from glassformer.models.stack import token_positions

MOST_ROWS = 256  # above, PyTorch's matrix products are faster

_known: WeakKeyDictionary[nn.Module, tuple[DecoderWeights, "NativeModel | None"]]
_known = WeakKeyDictionary()


class NativeModel:
    """A decoder in C, and its encoder where there is one."""

    def __init__(self, weights: DecoderWeights) -> None:
        self.weights, encoder = weights, weights.encoder
        self.decoder = NativeStack.of_decoder(weights)
        self.encoder = None
        if encoder is not None:
            self.encoder = NativeStack(weights.config, encoder, causal=False)
        self.tables = Tables(), 0  # of how many places

    def find_tables(self, n: int) -> Tables:
        """Tables of at least `n` places from 0 on, as the C code reads them."""
        if self.tables[1] < n:
            n = max(n, min(1 << n.bit_length(), self.weights.config.max_len))
            self.tables = _make_tables(self.weights, n), n
        return self.tables[0]


def find_native(model: Decoder | EncoderDecoder) -> NativeModel | None:
    """A model in C, if it can be; kept with the model until its weights change."""
    weights = DecoderWeights.of(model)
    known = _known.get(model)
    if known is None or known[0] is not weights:
        known = weights, None if refusal(weights) else NativeModel(weights)
        _known[model] = known
    return known[1]


def native_refusal(model: Decoder | EncoderDecoder) -> str | None:
    """Why a model as it is now is not read in C; None if it is."""
    return weights_refusal(model) or refusal(DecoderWeights.of(model))


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
    tables = native.find_tables(longest)._replace(added=None)  # it has been added
    native.encoder.begin(memory, lengths=unequal, tables=tables).read(x, 0)
    return x, None if unequal is None else Padding(unequal)


class NativeStep(Step):
    """`Step` in C; it can also read several tokens of each row at once, and choose the next."""

    def __init__(
        self,
        native: NativeModel,
        *,
        batch: int,
        capacity: int,
        missing: Int[Tensor, " B"] | None = None,
        outputs: Int[Tensor, " n"] | None = None,
        copies: int = 1,
    ) -> None:
        self.native, self.copies, self.selected = native, copies, None
        if outputs is not None:
            self.selected = SelectedHead(native.weights.head, outputs, native.decoder.library)
        super().__init__(native.weights, batch=batch, capacity=capacity, missing=missing)

    def _set_up_places(self, capacity: int) -> None:
        self.reading = self.native.decoder.begin(
            self.memory,
            missing=self.missing,
            tables=self.native.find_tables(capacity),
            copies=self.copies,
            selected=self.selected,
        )

    def read_context(
        self, context: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None, copies: int
    ) -> None:
        assert copies == self.copies
        self.reading.read_context(context.contiguous(), lengths)

    def reorder(self, parents: Int[Tensor, " B"], length: int) -> None:
        self.reading.reorder(parents, length)

    def keep(self, rows: Int[Tensor, " n"], length: int) -> None:
        super().keep(rows, length)
        self.reading = self.reading.keep(self.memory, rows, self.missing)

    def __call__(self, tokens: Int[Tensor, " B"], length: int) -> Float[Tensor, "B V"]:
        return self.reading.read_tokens(tokens[:, None], length)


def _make_tables(weights: DecoderWeights, n: int) -> Tables:
    config, positions = weights.config, weights.stack.positions
    places = torch.arange(n, device=weights.embedding.device)
    added = cos = sin = None
    if isinstance(positions, LearnedPositions):
        added = positions.weight.detach()  # itself, as all weights: it may change in place
    elif positions is not None:
        added = positions(places).float().contiguous()
    if config.positions.kind == "rotary":
        wide = widen_tables(*config.rotary().tables(places), config.positions.layout)
        cos, sin = (each.float().contiguous() for each in wide)
    return Tables(added, cos, sin)


def _place(
    x: Float[Tensor, "B T C"], weights: StackWeights, added: Tensor | None
) -> Float[Tensor, "B T C"]:
    if added is not None:
        x = x + added.detach().to(x.dtype)
    if weights.embedding_norm is not None:
        x = normalize(x, weights.embedding_norm)
    return x.contiguous()
