"""The structures and functions of native_stack.c; native_structures.h has the same fields."""

import ctypes
import functools
from ctypes import POINTER, c_float, c_int32, c_long, c_uint, c_void_p

from glassformer.compilation import STACK
from glassformer.functional.native_library import load_library


class Linear(ctypes.Structure):
    """`linear_t`: a matrix in float32 or int8, perhaps again in panels."""

    _fields_ = (
        *((name, c_void_p) for name in ("weight", "integers", "scale", "bias", "panels")),
        *((name, c_long) for name in ("n_out", "n_in")),
    )


class Norm(ctypes.Structure):
    """`norm_t`; a weight of 0 means none."""

    _fields_ = (
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("eps", c_float),
        ("centered", c_int32),
    )


class Layer(ctypes.Structure):
    """`layer_t`."""

    _fields_ = (
        *((f"{name}_norm", Norm) for name in ("attention", "q", "k", "cross", "feed_forward")),
        *((name, Linear) for name in ("qkv", "out", "cross_q", "cross_out", "up", "down")),
    )


class Stack(ctypes.Structure):
    """`stack_t`: what does not change from call to call."""

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
        *((name, Norm) for name in ("embedding_norm", "final_norm")),
        ("embedding", Linear),
        ("embedding_scale", c_float),
        ("layers", POINTER(Layer)),
    )


class Call(ctypes.Structure):
    """`call_t`: the rows of a call, and where everything lies."""

    _fields_ = (
        *((name, c_long) for name in ("n_sequences", "n_tokens", "length")),
        *((name, c_long) for name in ("n_logits", "alike")),
        *((name, c_void_p) for name in ("head", "outputs")),
        *((name, c_void_p) for name in ("tokens", "x", "logits", "memory")),
        *((name, c_long) for name in ("capacity", "memory_stride")),
        *((name, c_void_p) for name in ("missing", "lengths", "added", "cos", "sin", "origins")),
        *((name, c_void_p) for name in ("contexts", "context_lengths")),
        *((name, c_long) for name in ("context_len", "copies")),
        ("scratch", c_void_p),
        *((name, c_void_p) for name in ("parallel", "thread", "n_threads", "barrier")),
        ("most_threads", c_uint),
    )


class Barrier(ctypes.Structure):
    """`barrier_t`: where the threads of a call wait for each other; all 0 at first."""

    _fields_ = tuple(
        (name, c_int32) for name in ("n_arrived", "phase", "n_asleep", "n_passed", "n_slept")
    )


class Choice(ctypes.Structure):
    """`choice_t`: which tokens may be chosen, and which end a text."""

    _fields_ = (
        *((name, c_void_p) for name in ("never", "stops")),
        *((name, c_long) for name in ("n_never", "n_stops")),
        ("forbidden", c_void_p),
        ("renormalizes", c_int32),
    )


@functools.cache
def find_stack_library() -> ctypes.CDLL | None:
    """The functions of native_stack.c, if they can be built."""
    library = load_library(STACK)
    if library is not None:
        declare_functions(library)
    return library


def declare_functions(library: ctypes.CDLL) -> None:
    """Types of arguments and results, where they are not int."""
    for function in (library.scratch_floats, library.least_rows, library.panel_bytes):
        function.restype = c_long
    for function in (library.read_rows, library.project_rows, library.lay_out, library.rank_rows):
        function.restype = None
    library.scratch_floats.argtypes = library.read_rows.argtypes = [c_void_p] * 2
    library.panel_bytes.argtypes, library.lay_out.argtypes = [c_void_p], [c_void_p] * 2
    library.project_rows.argtypes = [c_void_p] * 5
    library.rank_rows.argtypes = [*[c_void_p] * 3, c_long, *[c_void_p] * 2]
    library.write_greedily.restype = library.write_ahead.restype = c_long
    library.write_ahead.argtypes = [c_void_p] * 4
    library.write_greedily.argtypes = [*[c_void_p] * 3, c_long, c_void_p]
