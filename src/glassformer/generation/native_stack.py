"""The layers of an encoder or a decoder in C (native_stack.c), for a few rows at a time.

`find_stack_library` says None where there is no compiler, `refusal` why weights are not for it.
The structures here are those of native_structures.h, field by field.
"""

import ctypes
import functools
from collections.abc import Sequence
from ctypes import POINTER, byref, c_float, c_int32, c_long, c_uint, c_void_p
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional.int8 import Int8Weight
from glassformer.functional.int8.kernel import SOURCES as INT8_SOURCES
from glassformer.functional.native_library import find_threads, load_library
from glassformer.models import Config
from glassformer.models.decoder_weights import LayerWeights, Linear, Norm, StackWeights

SOURCE = Path(__file__).with_name("native_stack.c")
INCLUDED = (
    *sorted(SOURCE.parent.glob("*.[ch]")),
    *INT8_SOURCES,
)
FLAGS = ("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")  # numbered as in the C file
_WIDEST_HEAD = 256
_LEAST, _MOST = 4, 1 << 17  # outputs of a matrix, and inputs whose int8 sums fit 32 bits
_MANY = 512  # rows, read several at a time, after which panels have paid for themselves
_MOST_PANELS = 1 << 29  # bytes
_ONE_THREAD = 1 << 20  # products below which waking another thread costs more than it saves


class _Linear(ctypes.Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("weight", "integers", "scale", "bias", "panels")),
        *((name, c_long) for name in ("n_out", "n_in")),
    )


class _Norm(ctypes.Structure):
    _fields_ = (
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("eps", c_float),
        ("centered", c_int32),
    )


class _Layer(ctypes.Structure):
    _fields_ = (
        *((f"{name}_norm", _Norm) for name in ("attention", "q", "k", "cross", "feed_forward")),
        *((name, _Linear) for name in ("qkv", "out", "cross_q", "cross_out", "up", "down")),
    )


class _Stack(ctypes.Structure):
    _fields_ = (
        *(
            (name, c_long)
            for name in ("n_layers", "dim", "hidden", "heads", "kv_heads", "head_dim", "window")
        ),
        *((name, c_float) for name in ("scale", "output_scale")),
        *(
            (name, c_int32)
            for name in ("pre_norm", "gated", "activation", "interleaved", "causal", "is_int8")
        ),
        ("final_norm", _Norm),
        ("head", _Linear),
        ("layers", POINTER(_Layer)),
    )


class _Call(ctypes.Structure):
    _fields_ = (
        *((name, c_long) for name in ("n_sequences", "n_tokens", "length")),
        *((name, c_void_p) for name in ("x", "logits", "memory")),
        *((name, c_long) for name in ("capacity", "memory_stride")),
        *((name, c_void_p) for name in ("missing", "lengths", "cos", "sin")),
        *((name, c_void_p) for name in ("contexts", "context_lengths")),
        *((name, c_long) for name in ("context_len", "copies")),
        ("scratch", c_void_p),
        *((name, c_void_p) for name in ("parallel", "thread", "n_threads", "barrier")),
        ("most_threads", c_uint),
    )


@functools.cache
def find_stack_library() -> ctypes.CDLL | None:
    """The functions of native_stack.c, if they can be built."""
    library = load_library(SOURCE, FLAGS, included=INCLUDED)
    if library is not None:
        declare_functions(library)
    return library


def declare_functions(library: ctypes.CDLL) -> None:
    """Types of arguments and results, where they are not int."""
    for function in (library.scratch_floats, library.least_rows, library.panel_bytes):
        function.restype = c_long
    for function in (library.read_rows, library.project_rows, library.lay_out):
        function.restype = None
    library.scratch_floats.argtypes = library.read_rows.argtypes = [c_void_p] * 2
    library.panel_bytes.argtypes, library.lay_out.argtypes = [c_void_p], [c_void_p] * 2
    library.project_rows.argtypes = [c_void_p] * 5


def refusal(config: Config, stacks: Sequence[StackWeights], head: Linear) -> str | None:
    """Why these weights are not read in C; None if they are."""
    if config.head_dim > _WIDEST_HEAD:
        return f"heads are wider than {_WIDEST_HEAD}"
    for each in (tensor for stack in stacks for tensor in stack.tensors):
        if each.dtype is not torch.float32 or not each.is_cpu:
            return "weights are not float32 or int8 on a CPU"
    matrices = [linear.weight for stack in stacks for linear in stack.linears] + [head.weight]
    for each in matrices:
        if each.shape[0] < _LEAST or each.shape[1] > _MOST:
            return f"a matrix has the shape {tuple(each.shape)}"
        if not _find_numbers(each).is_contiguous():
            return "a matrix is not contiguous"
    if len({isinstance(each, Int8Weight) for each in matrices}) > 1:
        return "some matrices are int8 and some are not"
    library = find_stack_library()
    if library is None:
        return "there is no C compiler"
    return None if library.is_tuned() else "the processor has no vectors that it is written for"


class NativeStack:
    """The weights of a stack as the C code reads them, perhaps with the head after it."""

    def __init__(
        self, config: Config, weights: StackWeights, *, causal: bool, head: Linear | None = None
    ) -> None:
        library = find_stack_library()
        assert library is not None
        self.library, self.weights, self.config, self.head = library, weights, config, head
        self.size = sum(each.numel() for each in weights.tensors)
        self.vocab = 0 if head is None else len(head.weight)
        self.panels: dict[int, Tensor] = {}  # by the address of the matrix
        self.least_rows = library.least_rows()
        self.n_rows = 0  # that were read so many or more at a time
        self.is_decided = False  # whether panels pay
        is_int8 = isinstance(weights.layers[0].feed_forward.up.weight, Int8Weight)
        self.stack = _Stack(
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
            final_norm=_describe_norm(weights.final_norm),
        )
        self._describe_matrices()

    def _describe_matrices(self) -> None:
        layers = [self._describe_layer(each) for each in self.weights.layers]
        self.layers = (_Layer * len(layers))(*layers)
        self.stack.layers = self.layers
        self.stack.head = self.describe_linear(self.head)

    def expect_rows(self, n: int) -> None:
        """Lay the matrices out for many rows once there have been so many that it pays."""
        if n < self.least_rows or self.is_decided:
            return
        self.n_rows += n
        if self.n_rows < _MANY:
            return
        self.is_decided = True
        linears = [*self.weights.linears, *([] if self.head is None else [self.head])]
        matrices = [self.describe_linear(each) for each in linears]
        sizes = [self.library.panel_bytes(byref(each)) for each in matrices]
        if sum(sizes) > _MOST_PANELS:
            return
        for linear, matrix, size in zip(linears, matrices, sizes, strict=True):
            if size:
                panels = torch.empty(size, dtype=torch.uint8)
                self.library.lay_out(byref(matrix), panels.data_ptr())
                self.panels[_find_numbers(linear.weight).data_ptr()] = panels
        self._describe_matrices()

    def describe_linear(self, linear: Linear | None) -> _Linear:
        """A matrix as the C code reads it."""
        if linear is None:
            return _Linear()
        weight, numbers = linear.weight, _find_numbers(linear.weight)
        described = _Linear(
            bias=_address(linear.bias),
            panels=_address(self.panels.get(numbers.data_ptr())),
            n_out=weight.shape[0],
            n_in=weight.shape[1],
        )
        if isinstance(weight, Int8Weight):
            described.integers, described.scale = numbers.data_ptr(), weight.scale.data_ptr()
        else:
            described.weight = numbers.data_ptr()
        return described

    def _describe_layer(self, layer: LayerWeights) -> _Layer:
        attention, cross, feed_forward = layer
        return _Layer(
            attention_norm=_describe_norm(attention.norm),
            q_norm=_describe_norm(attention.q_norm),
            k_norm=_describe_norm(attention.k_norm),
            cross_norm=_describe_norm(None if cross is None else cross.norm),
            feed_forward_norm=_describe_norm(feed_forward.norm),
            qkv=self.describe_linear(attention.qkv),
            out=self.describe_linear(attention.out),
            cross_q=self.describe_linear(None if cross is None else cross.q),
            cross_out=self.describe_linear(None if cross is None else cross.out),
            up=self.describe_linear(feed_forward.up),
            down=self.describe_linear(feed_forward.down),
        )

    def begin(
        self,
        memory: Float[Tensor, "n B capacity 2 K D"],
        *,
        missing: Int[Tensor, " B"] | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        turns: tuple[Tensor, Tensor] | None = None,
    ) -> "Reading":
        """Sequences that are read together; `memory` of one layer is shared by all of them."""
        return Reading(self, memory, missing=missing, lengths=lengths, turns=turns)


class Reading:
    """Sequences that a stack reads, a few tokens of each at a time, and what it remembers."""

    def __init__(
        self,
        native: NativeStack,
        memory: Float[Tensor, "n B capacity 2 K D"],
        *,
        missing: Int[Tensor, " B"] | None,
        lengths: Int[Tensor, " B"] | None,
        turns: tuple[Tensor, Tensor] | None,
    ) -> None:
        self.native, self.turns = native, turns
        self.contexts: list[Tensor] = []  # of each layer: keys and values of cross-attention
        self.context_lengths: Tensor | None = None
        # Addresses are of these; they must live as long as the calls.
        self.kept: list[Any] = [memory, missing, lengths, turns]
        self.call = _Call(
            n_sequences=memory.shape[1],
            memory=memory.data_ptr(),
            capacity=memory.shape[2],
            memory_stride=memory.stride(0) if len(memory) > 1 else 0,
            missing=_address(missing),
            lengths=_address(lengths),
            cos=None if turns is None else turns[0].data_ptr(),
            sin=None if turns is None else turns[1].data_ptr(),
            copies=1,
        )

    def read_context(
        self, context: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None, copies: int
    ) -> None:
        """Project the keys and values of cross-attention, once for all steps and copies."""
        B, S, _ = context.shape
        config = self.native.config
        kept: list[Tensor] = []
        call = _Call(n_sequences=B, n_tokens=S)
        self._share(call, context)
        for layer in self.native.weights.layers:
            assert layer.cross is not None
            linear = self.native.describe_linear(layer.cross.kv)
            kept.append(context.new_empty(B, S, 2, config.n_kv_heads, config.head_dim))
            self.native.library.project_rows(
                ctypes.addressof(self.native.stack),
                ctypes.addressof(call),
                ctypes.addressof(linear),
                context.data_ptr(),
                kept[-1].data_ptr(),
            )
        self._attend_to(kept, lengths, copies)

    def keep(
        self,
        memory: Float[Tensor, "n B capacity 2 K D"],
        rows: Int[Tensor, " B"],
        missing: Int[Tensor, " B"] | None,
    ) -> "Reading":
        """The same reading of these rows alone, all copies of some prompts: `memory` has them."""
        other = Reading(self.native, memory, missing=missing, lengths=None, turns=self.turns)
        if self.contexts:
            copies = self.call.copies
            prompts = rows[::copies] // copies
            lengths = None if self.context_lengths is None else self.context_lengths[prompts]
            other._attend_to([each[prompts] for each in self.contexts], lengths, copies)
        return other

    def _attend_to(
        self,
        contexts: list[Float[Tensor, "B S 2 K D"]],
        lengths: Int[Tensor, " B"] | None,
        copies: int,
    ) -> None:
        self.contexts, self.context_lengths = contexts, lengths
        addresses = (c_void_p * len(contexts))(*(each.data_ptr() for each in contexts))
        self.kept.append(addresses)
        self.call.contexts = ctypes.addressof(addresses)
        self.call.context_lengths = _address(lengths)
        self.call.context_len, self.call.copies = contexts[0].shape[1], copies

    def read(self, x: Float[Tensor, "B T C"], length: int) -> Float[Tensor, "B V"] | None:
        """Read T tokens after the `length` before them: x becomes the hidden states.

        The logits after the last of them, where the stack has a head.
        """
        native, call = self.native, self.call
        assert x.is_contiguous() and x.dtype is torch.float32
        logits = x.new_empty(len(x), native.vocab) if native.vocab else None
        call.n_tokens, call.length, call.x = x.shape[1], length, x.data_ptr()
        call.logits = _address(logits)
        self._share(call, x)
        native.library.read_rows(byref(native.stack), byref(call))
        return logits

    def _share(self, call: _Call, x: Float[Tensor, "B T C"]) -> None:
        """Threads for the work of a call, and memory for what lies between its phases."""
        rows, threads = x.shape[0] * x.shape[1], torch.get_num_threads()
        self.native.expect_rows(rows)
        is_shared = rows * self.native.size > _ONE_THREAD and threads > 1
        functions = find_threads()
        call.most_threads = 1
        call.parallel = None
        if is_shared and functions.parallel is not None:
            call.parallel, call.thread, call.n_threads, call.barrier = functions
            call.most_threads = threads
        size = self.native.library.scratch_floats(byref(self.native.stack), byref(call))
        self.scratch = x.new_empty(size)
        call.scratch = self.scratch.data_ptr()


def _find_numbers(weight: Tensor) -> Tensor:
    return weight.integers if isinstance(weight, Int8Weight) else weight


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _describe_norm(norm: Norm | None) -> _Norm:
    if norm is None:
        return _Norm()
    return _Norm(
        weight=norm.weight.data_ptr(),
        bias=_address(norm.bias),
        eps=norm.eps,
        centered=norm.centered,
    )
