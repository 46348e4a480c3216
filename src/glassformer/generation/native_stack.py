"""The layers of an encoder or a decoder in C (native_stack.c), for a few rows at a time.

`refusal` says why weights are not for it: there may be no compiler, or other kinds of numbers.
"""

import ctypes
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.native_library import find_threads
from glassformer.functional.quantized import QuantizedWeight, find_numbers
from glassformer.generation import native_structures as structures
from glassformer.generation.choice_rule import Rule
from glassformer.generation.native_matrices import Matrices, SelectedHead
from glassformer.generation.native_structures import find_stack_library
from glassformer.generation.output_selection import spread_logits
from glassformer.generation.thread_count import ThreadCount
from glassformer.models import Config
from glassformer.models.decoder_weights import (
    DecoderWeights,
    LayerWeights,
    Linear,
    Norm,
    StackWeights,
)

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")  # numbered as in the C file
_WIDEST_HEAD = 256
_LEAST, _MOST = 4, 1 << 17  # outputs of a matrix, and inputs whose int8 sums fit 32 bits
_MANY = 512  # rows, read several at a time, after which panels have paid for themselves
_ONE_THREAD = 1 << 20  # products below which waking another thread costs more than it saves
_TRIAL = 2  # tokens that several threads write before they are asked how long they waited


def refusal(weights: DecoderWeights) -> str | None:
    """Why these weights are not read in C; None if they are."""
    config, head = weights.config, weights.head
    stacks = (weights.stack,) if weights.encoder is None else (weights.stack, weights.encoder)
    if config.head_dim > _WIDEST_HEAD:
        return f"heads are wider than {_WIDEST_HEAD}"
    for each in (tensor for stack in stacks for tensor in stack.tensors):
        if each.dtype is not torch.float32 or not each.is_cpu:
            return "weights are not float32 or int8 on a CPU"
    matrices = [linear.weight for stack in stacks for linear in stack.linears] + [head.weight]
    for each in matrices:
        if each.shape[0] < _LEAST or each.shape[1] > _MOST:
            return f"a matrix has the shape {tuple(each.shape)}"
    if not all(find_numbers(each)[0].is_contiguous() for each in (*matrices, weights.embedding)):
        return "a matrix is not contiguous"
    kinds = {find_numbers(each)[0].dtype for each in matrices}
    if kinds not in ({torch.float32}, {torch.int8}):
        return "the matrices are not all float32, nor all int8"
    library = find_stack_library()
    if library is None:
        return "there is no C compiler"
    return None if library.is_tuned() else "the processor has no vectors that it is written for"


class Tables(NamedTuple):
    """What positions add to embeddings (places, C), and rotary tables (places, D)."""

    added: Tensor | None = None
    cos: Tensor | None = None
    sin: Tensor | None = None


class NativeStack:
    """The weights of a stack as the C code reads them, perhaps with the head after it."""

    @classmethod
    def of_decoder(cls, weights: DecoderWeights) -> "NativeStack":
        """From tokens to logits."""
        native = cls(weights.config, weights.stack, causal=True, head=weights.head)
        native.stack.embedding = native.matrices.describe(Linear(weights.embedding, None))
        native.stack.embedding_scale = weights.embedding_scale
        return native

    def __init__(
        self, config: Config, weights: StackWeights, *, causal: bool, head: Linear | None = None
    ) -> None:
        library = find_stack_library()
        assert library is not None
        self.library, self.weights, self.config, self.head = library, weights, config, head
        self.size = sum(each.numel() for each in weights.tensors)
        self.matrices = Matrices(library)
        self.least_rows = library.least_rows()
        self.threads = ThreadCount()
        self.n_rows = 0  # that were read so many or more at a time
        self.is_decided = False  # whether panels pay
        is_int8 = isinstance(weights.layers[0].feed_forward.up.weight, QuantizedWeight)
        self.stack = structures.Stack(
            n_layers=len(weights.layers),
            dim=config.dim,
            hidden=config.hidden_dim,
            heads=config.n_heads,
            kv_heads=config.n_kv_heads,
            head_dim=config.head_dim,
            window=config.window or 0,
            scale=config.attention_scale or config.head_dim**-0.5,
            output_scale=config.output.scale,
            pre_norm=config.norms.place == "pre",
            gated=config.gated,
            activation=ACTIVATIONS.index(config.activation),
            interleaved=config.positions.layout == "interleaved",
            causal=causal,
            is_int8=is_int8,
            embedding_norm=_describe_norm(weights.embedding_norm),
            final_norm=_describe_norm(weights.final_norm),
        )
        self._describe_matrices()

    def _describe_matrices(self) -> None:
        layers = [self._describe_layer(each) for each in self.weights.layers]
        self.layers = (structures.Layer * len(layers))(*layers)
        self.stack.layers = self.layers
        self.output = self.matrices.describe(self.head)

    def expect_rows(self, n: int) -> None:
        """Lay the matrices out for many rows once there have been so many that it pays."""
        if n < self.least_rows or self.is_decided:
            return
        self.n_rows += n
        if self.n_rows < _MANY:
            return
        self.is_decided = True
        self.matrices.lay_out([*self.weights.linears, *([self.head] if self.head else [])])
        self._describe_matrices()

    def _describe_layer(self, layer: LayerWeights) -> structures.Layer:
        attention, cross, feed_forward = layer
        return structures.Layer(
            attention_norm=_describe_norm(attention.norm),
            q_norm=_describe_norm(attention.q_norm),
            k_norm=_describe_norm(attention.k_norm),
            cross_norm=_describe_norm(None if cross is None else cross.norm),
            feed_forward_norm=_describe_norm(feed_forward.norm),
            qkv=self.matrices.describe(attention.qkv),
            out=self.matrices.describe(attention.out),
            cross_q=self.matrices.describe(None if cross is None else cross.q),
            cross_out=self.matrices.describe(None if cross is None else cross.out),
            up=self.matrices.describe(feed_forward.up),
            down=self.matrices.describe(feed_forward.down),
        )

    def begin(
        self,
        memory: Float[Tensor, "n B capacity 2 K D"],
        *,
        missing: Int[Tensor, " B"] | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        tables: Tables,
        copies: int = 1,
        selected: SelectedHead | None = None,
    ) -> "Reading":
        """Sequences that are read together, every `copies` of them from the same prompt.

        `memory` of one layer is shared by all of them. Only `selected` tokens get logits.
        """
        origins = None
        if copies > 1:
            own = torch.arange(memory.shape[1], dtype=torch.int32, device=memory.device) % copies
            origins = own[:, None].repeat(1, memory.shape[2])
        return Reading(self, memory, missing, lengths, tables, origins, copies, selected)


class Reading:
    """Sequences that a stack reads, a few tokens of each at a time, and what it remembers."""

    def __init__(
        self,
        native: NativeStack,
        memory: Float[Tensor, "n B capacity 2 K D"],
        missing: Int[Tensor, " B"] | None,
        lengths: Int[Tensor, " B"] | None,
        tables: Tables,
        origins: Int[Tensor, "B capacity"] | None,
        copies: int,
        selected: SelectedHead | None,
    ) -> None:
        self.native, self.tables, self.origins = native, tables, origins
        self.selected = selected
        self.contexts: list[Tensor] = []  # of each layer: keys and values of cross-attention
        self.context_lengths: Tensor | None = None
        self.barrier = structures.Barrier()
        # Addresses are of these; they must live as long as the calls.
        self.kept: list[Any] = [memory, missing, lengths]
        self.call = structures.Call(
            n_sequences=memory.shape[1],
            n_logits=1,
            memory=memory.data_ptr(),
            capacity=memory.shape[2],
            memory_stride=memory.stride(0) if len(memory) > 1 else 0,
            missing=_address(missing),
            lengths=_address(lengths),
            added=_address(tables.added),
            cos=_address(tables.cos),
            sin=_address(tables.sin),
            origins=_address(origins),
            copies=copies,
        )

    def read_context(
        self, context: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None
    ) -> None:
        """Project the keys and values of cross-attention, once for all steps and copies."""
        B, S, _ = context.shape
        config = self.native.config
        kept: list[Tensor] = []
        call = structures.Call(n_sequences=B, n_tokens=S)
        self._share(call, context)
        for layer in self.native.weights.layers:
            assert layer.cross is not None
            linear = self.native.matrices.describe(layer.cross.kv)
            kept.append(context.new_empty(B, S, 2, config.n_kv_heads, config.head_dim))
            self.native.library.project_rows(
                ctypes.addressof(self.native.stack),
                ctypes.addressof(call),
                ctypes.addressof(linear),
                context.data_ptr(),
                kept[-1].data_ptr(),
            )
        self._attend_to(kept, lengths)

    def keep(
        self,
        memory: Float[Tensor, "n B capacity 2 K D"],
        rows: Int[Tensor, " B"],
        missing: Int[Tensor, " B"] | None,
    ) -> "Reading":
        """The same reading of these rows alone, all copies of some prompts: `memory` has them."""
        copies = self.call.copies
        origins = None if self.origins is None else self.origins[rows]
        other = Reading(
            self.native, memory, missing, None, self.tables, origins, copies, self.selected
        )
        if self.contexts:
            prompts = rows[::copies] // copies
            lengths = None if self.context_lengths is None else self.context_lengths[prompts]
            other._attend_to([each[prompts] for each in self.contexts], lengths)
        return other

    def _attend_to(
        self,
        contexts: list[Float[Tensor, "B S 2 K D"]],
        lengths: Int[Tensor, " B"] | None,
    ) -> None:
        self.contexts, self.context_lengths = contexts, lengths
        addresses = (c_void_p * len(contexts))(*(each.data_ptr() for each in contexts))
        self.kept.append(addresses)
        self.call.contexts = ctypes.addressof(addresses)
        self.call.context_lengths = _address(lengths)
        self.call.context_len = contexts[0].shape[1]

    def read(self, x: Float[Tensor, "B T C"], length: int) -> None:
        """Read T tokens after the `length` before them: x becomes the hidden states."""
        assert x.is_contiguous() and x.dtype is torch.float32
        self._prepare(x, length, None)
        self.native.library.read_rows(byref(self.native.stack), byref(self.call))

    def read_tokens(self, tokens: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B V"]:
        """The logits after T more tokens; `length` tokens were read before."""
        self._prepare_tokens(tokens, length)
        self.native.library.read_rows(byref(self.native.stack), byref(self.call))
        return self._spread(self.logits)

    def read_ahead(self, tokens: Int[Tensor, "1 T"], length: int) -> Float[Tensor, "T V"]:
        """The logits after each of these tokens, bit for bit as if they were read one by one."""
        self._prepare_tokens(tokens, length, is_ahead=True)
        self.native.library.read_rows(byref(self.native.stack), byref(self.call))
        return self._spread(self.logits)

    def write_ahead(
        self, tokens: Int[Tensor, "1 T"], length: int, rule: Rule
    ) -> Int[Tensor, " n"] | None:
        """The most probable token after each of these, until one is not the next of them.

        None if there is nothing to choose; `logits` are then those that leave nothing.
        """
        self._prepare_tokens(tokens, length, is_ahead=True)
        written = torch.empty_like(tokens[0])
        stack, call, choice = self.native.stack, self.call, self._find_choice(rule)
        n = self.native.library.write_ahead(
            byref(stack), byref(call), byref(choice), written.data_ptr()
        )
        if n < 0:
            self.logits = self.logits[-1 - n : -n]
            return None
        return written[:n]

    def write(
        self, tokens: Int[Tensor, "B T"], length: int, n_steps: int, rule: Rule
    ) -> Int[Tensor, "n B"] | None:
        """The most probable tokens after these, up to `n_steps` times, until a row has ended.

        None if the logits leave some row nothing to choose.
        """
        self._prepare_tokens(tokens, length)
        if self.native.threads.is_trial:
            n_steps = min(n_steps, _TRIAL)
        written = tokens.new_empty(n_steps, len(tokens))
        stack, call, choice = self.native.stack, self.call, self._find_choice(rule)
        n = self.native.library.write_greedily(
            byref(stack), byref(call), byref(choice), n_steps, written.data_ptr()
        )
        return None if n < 0 else written[:n]

    def rank(
        self, tokens: Int[Tensor, "B T"], length: int, n_best: int, rule: Rule
    ) -> tuple[Float[Tensor, "B n"], Int[Tensor, "B n"]]:
        """The best tokens after these, and their log-probabilities; NaN where logits have one."""
        self._prepare_tokens(tokens, length)
        self.native.library.read_rows(byref(self.native.stack), byref(self.call))
        logs = tokens.new_empty(len(tokens), n_best, dtype=torch.float64)
        best = tokens.new_zeros(len(tokens), n_best)
        stack, call, choice = self.native.stack, self.call, self._find_choice(rule)
        self.native.library.rank_rows(
            byref(stack), byref(call), byref(choice), n_best, logs.data_ptr(), best.data_ptr()
        )
        return logs, best

    def reorder(self, parents: Int[Tensor, " B"], length: int) -> None:
        """Row i becomes what row `parents[i]` was: its slots lie where that row's lay."""
        if self.origins is not None:  # otherwise no row has another to change places with
            self.origins[:, :length] = self.origins[parents, :length]

    def _find_choice(self, rule: Rule) -> structures.Choice:
        return (rule if self.selected is None else rule.select(self.selected.tokens)).choice

    def _spread(self, logits: Float[Tensor, "B n"]) -> Float[Tensor, "B V"]:
        if self.selected is None:
            return logits
        return spread_logits(logits, self.selected.tokens, self.native.config.vocab_size)

    def _prepare_tokens(
        self, tokens: Int[Tensor, "B T"], length: int, *, is_ahead: bool = False
    ) -> None:
        tokens = tokens.contiguous()
        self.call.alike = is_ahead
        self.call.n_logits = tokens.shape[1] if is_ahead else 1
        self.x = tokens.new_empty(*tokens.shape, self.native.config.dim, dtype=torch.float32)
        n_rows = len(tokens) * self.call.n_logits
        self._prepare(self.x, length, tokens)
        output = self.native.output
        if self.selected is not None:
            if not is_ahead or self.native.stack.is_int8:
                self.selected.expect_rows(n_rows)
            output = self.selected.structure
            self.call.outputs = self.selected.tokens.data_ptr()
        self.output = output  # kept while its address is
        self.call.head = ctypes.addressof(output)
        self.logits = tokens.new_empty(n_rows, output.n_out, dtype=torch.float32)
        self.call.logits = self.logits.data_ptr()

    def _prepare(self, x: Tensor, length: int, tokens: Tensor | None) -> None:
        self.tokens = tokens  # kept while its address is
        call = self.call
        call.n_tokens, call.length, call.x = x.shape[1], length, x.data_ptr()
        call.tokens = _address(tokens)
        self._share(call, x)

    def _share(self, call: structures.Call, x: Float[Tensor, "B T C"]) -> None:
        """Threads for the work of a call, and memory for what lies between its phases."""
        rows, threads = x.shape[0] * x.shape[1], self.native.threads.count(self.barrier)
        if not call.alike or self.native.stack.is_int8:  # sums of integers have one result
            self.native.expect_rows(rows)
        is_shared = rows * self.native.size > _ONE_THREAD and threads > 1
        functions = find_threads()
        call.most_threads = 1
        call.parallel = None
        if is_shared and functions.parallel is not None:
            call.parallel, call.thread, call.n_threads = functions
            call.barrier = ctypes.addressof(self.barrier)
            call.most_threads = threads
        size = self.native.library.scratch_floats(byref(self.native.stack), byref(call))
        self.scratch = x.new_empty(size)
        call.scratch = self.scratch.data_ptr()


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _describe_norm(norm: Norm | None) -> structures.Norm:
    if norm is None:
        return structures.Norm()
    return structures.Norm(
        weight=norm.weight.data_ptr(),
        bias=_address(norm.bias),
        eps=norm.eps,
        centered=norm.centered,
    )
