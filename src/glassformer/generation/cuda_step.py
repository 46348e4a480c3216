"""One decoding step on a GPU, without a module and without a number that the host must know.

Lengths, tokens and the memory lie in tensors of fixed addresses, so that a step can be captured as
one CUDA graph and replayed for each token. Attention reads only the slots that are filled. Up to
`FEW` rows, products are by kernels of our own, which read each weight once; with more rows by
cuBLAS.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.functional.int8 import find_numbers
from glassformer.generation import program_shapes as shapes
from glassformer.generation.cuda_layers import Attend, run_layers
from glassformer.generation.products import multiply, pad_outputs
from glassformer.generation.step import widen_tables
from glassformer.models.decoder_weights import AttentionWeights, DecoderWeights, Linear, Norm

FEW = 4  # rows
_FAR = 1 << 30  # no window


def refusal(weights: DecoderWeights) -> str | None:
    """Why the kernels cannot decode with these weights; None if they can."""
    if find_spec("triton") is None:
        return "triton is not installed"
    config, dtype = weights.config, weights.embedding.dtype
    if dtype not in (torch.bfloat16, torch.float16, torch.float32):
        return f"the kernels do not compute in {dtype}"
    if config.head_dim > 256:
        return f"the kernels support heads of at most 256; got {config.head_dim}"
    return None


class CudaStep:
    """Weights, tables and state of a batch. A call reads one token per row and gives logits.

    ::

        tokens    (B,)    to be read next
        lengths   (B,)    how many tokens each row has in memory, its padding included
        missing   (B,)    padding at the beginning of each row
        memory    (layers, B, capacity, 2, K, D)    keys and values
        logits    (B, V)    after the last call

    `copies` rows that follow each other have one source, and one row of forbidden tokens.
    """

    def __init__(
        self,
        weights: DecoderWeights,
        *,
        batch: int,
        capacity: int,
        missing: Int[Tensor, " B"] | None = None,
        copies: int = 1,
    ) -> None:
        config, device = weights.config, weights.embedding.device
        like = weights.embedding.new_empty(1)  # floats, also where the embedding is int8
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
        self.memory = like.new_zeros(
            len(weights.stack.layers), batch, capacity, 2, config.n_kv_heads, config.head_dim
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

    def choose(self, written: Int[Tensor, "T B"]) -> None:
        """The token with the largest logit of each row becomes the next, and is written down."""
        from glassformer.generation.step_kernels import choose_kernel, largest_kernel

        if not self.is_few:
            self.launch(largest_kernel, self.n_blocks, self.batch)(
                self.logits,
                self.excluded,
                self.forbidden,
                self.best,
                self.best_index,
                self.config.vocab_size,
                self.logits.stride(0),
                COPIES=self.copies,
                FORBIDS=self.is_restricted,
                BLOCK=self.block,
                num_warps=4,
            )
        self.launch(choose_kernel, self.batch)(
            self.best,
            self.best_index,
            self.tokens,
            self.lengths,
            written,
            self.batch,
            self.n_blocks,
            PARTS=shapes.power_above(self.n_blocks),
            num_warps=4,
        )

    def reorder(self, parents: Int[Tensor, " B"], length: int) -> None:
        """Row i becomes what row `parents[i]` was."""
        self.memory[:, :, :length] = self.memory[:, parents, :length]

    def __call__(self) -> Float[Tensor, "B V"]:
        """Read `tokens`; the caller advances `lengths`."""
        self._embed()
        return self._run_few() if self.is_few else self._run_many()

    def launch(self, kernel: Any, *grid: int) -> Callable[..., None]:
        """What launches a kernel, which may start before the one before it has ended."""
        overlaps = {"launch_pdl": True} if self.overlaps else {}
        return partial(kernel[grid], OVERLAPS=self.overlaps, **overlaps)

    def _embed(self) -> None:
        from glassformer.generation.step_kernels import embed_kernel

        weights, C = self.weights, self.config.dim
        numbers, row_scale = find_numbers(weights.embedding)
        self.launch(embed_kernel, self.batch)(
            self.tokens,
            self.lengths,
            self.missing,
            numbers,
            numbers if row_scale is None else row_scale,
            self.added,
            self.x,
            float(weights.embedding_scale),
            C,
            ADDS=weights.stack.positions is not None,
            IS_INT8=row_scale is not None,
            WIDTH=shapes.power_above(C),
            num_warps=4,
        )

    def _run_few(self) -> Tensor:
        config = self.config
        for i, (attention, cross, feed_forward) in enumerate(self.weights.stack.layers):
            heads = self._multiply(self.x, attention.qkv, norm=attention.norm)
            norms = (attention.q_norm, attention.k_norm)
            found = self._attend(heads, self.memory[i], norms=norms)
            self._multiply(found, attention.out, onto=self.x)
            if cross is not None:
                heads = self._multiply(self.x, cross.q, norm=cross.norm)
                found = self._attend(heads, self.contexts[i], is_self=False)
                self._multiply(found, cross.out, onto=self.x)
            hidden = self._multiply(
                self.x,
                feed_forward.up,
                norm=feed_forward.norm,
                activation=config.activation,
                gated=config.gated,
            )
            self._multiply(hidden, feed_forward.down, onto=self.x)
        norm = self.weights.stack.final_norm
        return self._multiply(self.x, self.weights.head, norm=norm, is_head=True)

    def _run_many(self) -> Tensor:
        def attend(i: int, heads: Tensor, weights: AttentionWeights) -> Tensor:
            norms = (weights.q_norm, weights.k_norm)
            return self._attend(heads, self.memory[i], norms=norms, whole=True)

        x = self.run_layers(self.x, attend)
        x = x if self.config.output.scale == 1.0 else x * self.config.output.scale
        self.logits.copy_(multiply(x, self.head)[:, : self.config.vocab_size])
        return self.logits

    def run_layers(self, x: Float[Tensor, "N C"], attend: Attend) -> Float[Tensor, "N C"]:
        """All layers and the last norm; `attend` is self-attention of a layer from its heads."""

        def attend_context(i: int, heads: Tensor) -> Tensor:
            return self._attend(heads, self.contexts[i], is_self=False, whole=True)

        return run_layers(self.weights, x, attend, attend_context, self._normalize)

    def _multiply(
        self,
        x: Tensor,
        linear: Linear,
        *,
        norm: Norm | None = None,
        activation: str = "none",
        gated: bool = False,
        onto: Tensor | None = None,
        is_head: bool = False,
    ) -> Tensor:
        from glassformer.generation.product_kernels import multiply_kernel

        weight, bias = linear.weight, linear.bias
        numbers, row_scale = find_numbers(weight)
        N, K = weight.shape[0] // (2 if gated else 1), weight.shape[1]
        splits = x.shape[2] if x.ndim == 4 else 0  # parts of attention
        y = self.logits if is_head else x.new_empty(self.batch, N, dtype=weight.dtype)
        y = y if onto is None else onto
        shape = shapes.shape_product(N, K, is_head=is_head)
        scale = self.config.output.scale if is_head else 1.0
        self.launch(multiply_kernel, shapes.count_blocks(N, shape.columns))(
            x,
            y,
            numbers,
            numbers if row_scale is None else row_scale,
            y if bias is None else bias,
            y if norm is None else norm.weight,
            y if norm is None or norm.bias is None else norm.bias,
            y,
            self.sums if splits else x,
            self.best,
            self.best_index,
            self.excluded,
            self.forbidden,
            float(scale),
            0.0 if norm is None else float(norm.eps),
            self.batch,
            N,
            self.config.n_heads,
            K=K,
            D=self.config.head_dim,
            SPLITS=splits,
            NORM="none" if norm is None else "layer" if norm.centered else "rms",
            ACTIVATION=activation,
            GATED=gated,
            IS_INT8=row_scale is not None,
            SCALES=scale != 1.0,
            HAS_BIAS=bias is not None,
            HAS_NORM_BIAS=norm is not None and norm.bias is not None,
            HAS_RESIDUAL=onto is not None,
            CHOOSES=is_head,
            COPIES=self.copies,
            FORBIDS=is_head and self.is_restricted,
            ROWS=shapes.power_above(self.batch),
            WIDTH=shapes.power_above(K),
            BLOCK_N=shape.columns,
            BLOCK_K=shape.chunk,
            num_warps=shape.warps,
        )
        return y

    def _attend(
        self,
        heads: Tensor,
        memory: Tensor,
        *,
        is_self: bool = True,
        norms: tuple[Norm | None, Norm | None] = (None, None),
        whole: bool = False,
    ) -> Tensor:
        """The heads' outputs (B, H · D), or with several parts (B, H, parts, D) to be merged."""
        from glassformer.generation.step_kernels import attend_kernel, merge_kernel

        config, B = self.config, self.batch
        H, KV, D = config.n_heads, config.n_kv_heads, config.head_dim
        splits = shapes.count_parts(memory.shape[1], B * KV)
        if splits == 1:
            out, sums = memory.new_empty(B, H * D), heads
        else:
            out = torch.empty(B, H, splits, D, dtype=torch.float32, device=memory.device)
            sums = torch.empty(B, H, splits, 2, dtype=torch.float32, device=memory.device)
        self.sums = sums
        q_norm, k_norm = norms
        origins = self.origins if is_self else None
        self.launch(attend_kernel, B * KV * splits)(
            heads,
            memory,
            self.cos,
            self.sin,
            heads if q_norm is None else q_norm.weight,
            heads if k_norm is None else k_norm.weight,
            self.lengths if is_self else self.context_lengths,
            self.missing if is_self else self.context_missing,
            self.lengths if origins is None else origins,
            out,
            sums,
            0.0 if q_norm is None else float(q_norm.eps),
            float(D**-0.5 if config.attention_scale is None else config.attention_scale),
            memory.stride(0),
            memory.stride(1),
            self.capacity,
            H,
            _FAR if config.window is None or not is_self else config.window,
            D=D,
            KV=KV,
            GROUP=H // KV,
            SPLITS=splits,
            COPIES=1 if is_self else self.copies,
            IS_SELF=is_self,
            FOLLOWS=origins is not None,
            ROTATES=is_self and config.positions.kind == "rotary",
            LAYOUT=config.positions.layout,
            NORMS=is_self and q_norm is not None,
            PRECISION="ieee" if memory.dtype == torch.float32 else None,
            WIDTH=max(16, shapes.power_above(D)),
            ROWS=max(16, shapes.power_above(H // KV)),
            BLOCK=32 if memory.dtype == torch.float32 else 64,
            num_warps=4,
            num_stages=2,  # little shared memory: the next kernel finds room while this one runs
        )
        if splits == 1 or not (whole or D & (D - 1)):  # products merge heads of powers of 2
            return out
        merged = memory.new_empty(B, H * D)
        self.launch(merge_kernel, B * H)(
            out, sums, merged, D=D, SPLITS=splits, WIDTH=shapes.power_above(D), num_warps=1
        )
        return merged

    def _normalize(self, x: Tensor, update: Tensor | None, norm: Norm) -> Tensor:
        """norm(x + update); before the sublayer, x becomes the sum."""
        from glassformer.generation.step_kernels import normalize_kernel

        y, C = torch.empty_like(x), x.shape[1]
        self.launch(normalize_kernel, len(x))(
            x,
            x if update is None else update,
            y,
            norm.weight,
            norm.weight if norm.bias is None else norm.bias,
            float(norm.eps),
            C,
            NORM="layer" if norm.centered else "rms",
            HAS_UPDATE=update is not None,
            HAS_BIAS=norm.bias is not None,
            KEEPS=self.config.norms.place == "pre",
            WIDTH=shapes.power_above(C),
            num_warps=4,
        )
        return y
