"""The state of a decoding step on a GPU: what a batch has read, and the tables of its model.

All of it lies in tensors of fixed addresses, so that a step can be captured as a CUDA graph.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.generation import program_shapes as shapes
from glassformer.generation.kernel_compilation import prepare_launch
from glassformer.generation.products import pad_outputs
from glassformer.generation.step import widen_tables
from glassformer.models.decoder_weights import DecoderWeights

FEW = 4  # rows: up to here, products are by kernels of our own


class CudaState:
    """Weights, tables and state of a batch.

    ::

        tokens    (B,)    to be read next
        lengths   (B,)    how many tokens each row has in memory, its padding included
        missing   (B,)    padding at the beginning of each row
        memory    (layers, B, capacity, 2, K, D)    keys and values
        logits    (B, V)    after the last call

    `copies` rows that follow each other have one source, and one row of forbidden tokens. With
    `ahead_of`, the rows are tokens that follow each other in the only text of that state, whose
    memory they share.
    """

    def __init__(
        self,
        weights: DecoderWeights,
        *,
        batch: int,
        capacity: int,
        missing: Int[Tensor, " B"] | None = None,
        copies: int = 1,
        ahead_of: "CudaState | None" = None,
    ) -> None:
        config, device = weights.config, weights.embedding.device
        like = weights.embedding.new_empty(1)  # floats, also where the embedding is quantized
        self.weights, self.batch, self.capacity, self.copies = weights, batch, capacity, copies
        self.config, self.like = config, like
        self.is_few = (
            batch <= FEW and config.norms.place == "pre" and weights.stack.embedding_norm is None
        )
        self.missing = torch.zeros(batch, dtype=torch.int32, device=device)
        if missing is not None:
            self.missing.copy_(missing)
        self.tokens = torch.zeros(batch, dtype=torch.long, device=device)
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=device)
        self.is_ahead = ahead_of is not None
        sizes = (batch, capacity, 2, config.n_kv_heads, config.head_dim)
        self.memory = (
            like.new_zeros(len(weights.stack.layers), *sizes)
            if ahead_of is None
            else ahead_of.memory
        )
        self.contexts: list[Tensor] = []  # per layer: (B / copies, S, 2, K, D)
        self.context_lengths = self.lengths
        self.context_missing = torch.zeros_like(self.lengths)
        self.origins: Tensor | None = None  # (B, capacity): the row of memory that has each slot
        self.logits = like.new_zeros(batch, config.vocab_size)
        self.head = weights.head
        self.x = like.new_zeros(batch, config.dim)
        # A vocabulary is cut into blocks; the largest logit of each is kept.
        self.block = shapes.head_block(config.vocab_size) if self.is_few else 4096
        self.n_blocks = shapes.count_blocks(config.vocab_size, self.block)
        self.best = torch.zeros(batch, self.n_blocks, dtype=torch.float32, device=device)
        self.best_index = torch.zeros(batch, self.n_blocks, dtype=torch.int32, device=device)
        self.excluded = torch.zeros(config.vocab_size, dtype=torch.float32, device=device)
        self.forbidden = self.excluded  # until `exclude` has a mask
        self.is_restricted = False
        places = torch.arange(capacity, device=device)
        self.added = like
        if weights.stack.positions is not None:
            places = places.clamp(max=config.max_len - 1)  # the rest is never reached
            self.added = weights.stack.positions(places).detach().to(like.dtype).contiguous()
        self.cos = self.sin = like
        if config.positions.kind == "rotary":
            tables = widen_tables(*config.rotary().tables(places), config.positions.layout)
            self.cos, self.sin = (table.contiguous() for table in tables)
        # Since Hopper, a kernel can start before the one that it depends on has ended.
        self.overlaps = like.is_cuda and torch.cuda.get_device_capability(device) >= (9, 0)
        if not self.is_few and like.is_cuda:
            self.head = pad_outputs(weights.head, 64)  # without which cuBLAS has no fast kernel
            V = config.vocab_size
            self.logits = like.new_zeros(batch, len(self.head.weight))[:, :V]

    def read_context(
        self, context: Float[Tensor, "P S C"], lengths: Int[Tensor, " P"] | None, copies: int
    ) -> None:
        """Project the keys and values of cross-attention, once for all steps and copies."""
        assert copies == self.copies
        config, S = self.config, context.shape[1]
        if not self.contexts:
            self.allocate_context(S)
        for layer, kept in zip(self.weights.stack.layers, self.contexts, strict=True):
            assert layer.cross is not None
            kv = F.linear(context, layer.cross.kv.weight, layer.cross.kv.bias)
            kept[:, :S] = kv.unflatten(-1, (2, config.n_kv_heads, config.head_dim))
        self.context_lengths.copy_(torch.full((len(context),), S) if lengths is None else lengths)

    def allocate_context(self, length: int) -> None:
        """Set up buffers for contexts of at most `length` tokens, which keep their addresses."""
        config, P = self.config, self.batch // self.copies
        shape = (P, length, 2, config.n_kv_heads, config.head_dim)
        self.contexts = [self.like.new_zeros(shape) for _ in self.weights.stack.layers]
        self.context_lengths = self.lengths.new_zeros(P)

    def exclude(self, never: Sequence[int], forbidden: Bool[Tensor, "P V"] | None) -> None:
        """Set the tokens that are not chosen: `never` in all rows, `forbidden` in each its own."""
        self.excluded.zero_()
        if never:
            self.excluded[list(never)] = -torch.inf
        self.is_restricted = forbidden is not None
        if forbidden is not None:
            if self.forbidden is self.excluded:
                self.forbidden = torch.zeros_like(forbidden, dtype=torch.int8, device=self.x.device)
            self.forbidden.copy_(forbidden)

    def reorder(self, parents: Int[Tensor, " B"], length: int) -> None:
        """Row i becomes what row `parents[i]` was."""
        self.memory[:, :, :length] = self.memory[:, parents, :length]

    def take_rows(self, other: "CudaState", rows: Int[Tensor, " B"], length: int) -> None:
        """Go on with these rows of another state, which has read so many tokens.

        All copies of a prompt come together. What is not chosen has to be set, too: `exclude`.
        """
        self.memory[:, :, :length] = other.memory[:, rows, :length]
        for name in ("tokens", "lengths", "missing"):
            getattr(self, name).copy_(getattr(other, name)[rows])
        if other.contexts:
            prompts = rows[:: self.copies] // self.copies
            self.context_lengths.copy_(other.context_lengths[prompts])
            for own, kept in zip(self.contexts, other.contexts, strict=True):
                own.copy_(kept[prompts])

    def launch(self, kernel: Any, *grid: int) -> Callable[..., None]:
        """What launches a kernel, which may start before the one before it has ended."""
        overlaps = {"launch_pdl": True} if self.overlaps else {}
        return prepare_launch(kernel, grid, OVERLAPS=self.overlaps, **overlaps)
