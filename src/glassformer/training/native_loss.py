"""The loss of a chunk of logits on a CPU, by a kernel in C that reads each logit twice."""

import ctypes
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from glassformer.compilation import LOSS
from glassformer.functional.native_library import find_threads, load_library

Measure = Callable[[Tensor, Tensor, float, bool], Tensor]


class _Job(ctypes.Structure):
    """`job_t` of native_loss.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("logits", "targets", "losses")),
        *((name, ctypes.c_int64) for name in ("n", "V")),
        ("smoothing", ctypes.c_float),
        ("learns", ctypes.c_int32),
        ("next", ctypes.c_int64),
    )


@cache
def find_measure() -> Measure | None:
    """What gives the losses of rows of float32 logits; None where it cannot be compiled.

    Where it learns, the gradient takes the place of the logits. Every target must be a token.
    """
    library = load_library(LOSS)
    if library is None:
        return None
    function = library.measure_losses
    function.argtypes = [ctypes.POINTER(_Job), ctypes.c_void_p, ctypes.c_uint]
    function.restype = None
    parallel = find_threads().parallel

    def measure(logits: Tensor, targets: Tensor, smoothing: float, learns: bool) -> Tensor:
        losses = logits.new_empty(len(logits))
        assert logits.is_contiguous() and targets.is_contiguous()
        pointers = (each.data_ptr() for each in (logits, targets, losses))
        job = _Job(*pointers, *logits.shape, smoothing, learns, 0)
        function(job, parallel, torch.get_num_threads())
        return losses

    return measure
