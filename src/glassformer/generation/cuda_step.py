"""One decoding step on a GPU, without a module and without a number that the host must know.

Lengths, tokens and the memory lie in tensors of fixed addresses, so that a step can be captured as
one CUDA graph and replayed for each token. Attention reads only the slots that are filled. Up to
`FEW` rows, products are by kernels of our own, which read each weight once; with more rows by
cuBLAS.
"""

from importlib.util import find_spec

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.quantized import find_numbers
from glassformer.functional.quantized.gpu import as_kernels_read
from glassformer.generation import program_shapes as shapes
from glassformer.generation.cuda_layers import Attend, run_layers
from glassformer.generation.cuda_state import CudaState
from glassformer.generation.products import multiply
from glassformer.models.config import Config
from glassformer.models.decoder_weights import AttentionWeights, Linear, Norm

_FAR = 1 << 30  # no window


def refusal(config: Config, dtype: torch.dtype) -> str | None:
    """Why the kernels cannot decode with weights of this dtype; None if they can."""
    if find_spec("triton") is None:
        return "triton is not installed"
    if dtype not in (torch.bfloat16, torch.float16, torch.float32):
        return f"the kernels do not compute in {dtype}"
    if config.head_dim > 256:
        return f"the kernels support heads of at most 256; got {config.head_dim}"
    return None


class CudaStep(CudaState):
    """A call reads one token per row and gives logits."""

    def __call__(self) -> Float[Tensor, "B V"]:
        """Read `tokens`; the caller advances `lengths`."""
        self._embed()
        return self._run_few() if self.is_few else self._run_many()

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

    def _embed(self) -> None:
        from glassformer.generation.step_kernels import embed_kernel

        weights, C = self.weights, self.config.dim
        numbers, row_scale = find_numbers(weights.embedding)
        numbers = as_kernels_read(numbers)
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
            HAS_SCALES=row_scale is not None,
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
        numbers = as_kernels_read(numbers)
        N, K = weight.shape[0] // (2 if gated else 1), weight.shape[1]
        splits = x.shape[2] if x.ndim == 4 else 0  # parts of attention
        y = self.logits if is_head else x.new_empty(self.batch, N, dtype=weight.dtype)
        y = y if onto is None else onto
        shape = shapes.shape_product(N, K, is_head=is_head, is_quantized=row_scale is not None)
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
            N,
            self.config.n_heads,
            K=K,
            D=self.config.head_dim,
            SPLITS=splits,
            NORM="none" if norm is None else "layer" if norm.centered else "rms",
            ACTIVATION=activation,
            GATED=gated,
            HAS_SCALES=row_scale is not None,
            SCALES=scale != 1.0,
            HAS_BIAS=bias is not None,
            HAS_NORM_BIAS=norm is not None and norm.bias is not None,
            HAS_RESIDUAL=onto is not None,
            CHOOSES=is_head,
            COPIES=self.copies,
            FORBIDS=is_head and self.is_restricted,
            ROWS=self.batch,
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
        if self.is_ahead:
            self._keep(heads, memory, norms[1])
        # Each row is divided as if it were read alone.
        programs = KV if self.is_ahead else B * KV
        splits = shapes.count_parts(memory.shape[1], programs)
        is_exact = memory.dtype == torch.float32
        width = max(16, shapes.power_above(D))
        shape = shapes.shape_attention(
            H // KV, width, programs * splits, memory.shape[1], is_exact=is_exact
        )
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
            0 if self.is_ahead else memory.stride(0),
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
            PRECISION="ieee" if is_exact else None,
            DOTS=shape.dots,
            WIDTH=width,
            ROWS=shape.rows,
            BLOCK=shape.keys,
            num_warps=shape.warps,
            num_stages=2,  # little shared memory: the next kernel finds room while this one runs
        )
        if splits == 1 or not (whole or B > 1 or D & (D - 1)):  # what products merge themselves
            return out
        merged = memory.new_empty(B, H * D)
        self.launch(merge_kernel, B * H)(
            out, sums, merged, D=D, SPLITS=splits, WIDTH=shapes.power_above(D), num_warps=1
        )
        return merged

    def _keep(self, heads: Tensor, memory: Tensor, norm: Norm | None) -> None:
        """Write the keys and values of all rows, before a row attends to those before it."""
        from glassformer.generation.draft_kernels import keep_kernel

        config = self.config
        self.launch(keep_kernel, self.batch * config.n_kv_heads)(
            heads,
            memory,
            self.cos,
            self.sin,
            heads if norm is None else norm.weight,
            self.lengths,
            self.missing,
            0.0 if norm is None else float(norm.eps),
            memory.stride(1),
            config.n_heads,
            D=config.head_dim,
            KV=config.n_kv_heads,
            ROTATES=config.positions.kind == "rotary",
            LAYOUT=config.positions.layout,
            NORMS=norm is not None,
            WIDTH=max(16, shapes.power_above(config.head_dim)),
            num_warps=1,
        )

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
