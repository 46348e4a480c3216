"""Kernels in C, loaded; where there is no compiler, PyTorch computes the same."""

import ctypes
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from glassformer import compilation


class Threads(NamedTuple):
    """Addresses of OpenMP's functions; None where they are not found, and one thread works."""

    parallel: int | None = None
    thread: int | None = None
    n_threads: int | None = None


def load_library(library: compilation.Library) -> ctypes.CDLL | None:
    """The functions of a C file, compiled if that has not been done; None if it cannot be."""
    with suppress(OSError, subprocess.SubprocessError):
        loaded = ctypes.CDLL(str(compilation.build(library)))
        return loaded if loaded.fits_processor() else None
    return None


@cache
def find_threads() -> Threads:
    """The functions of the very OpenMP that torch runs on: two pools of threads would compete."""
    folder = Path(torch.__file__).parent / "lib"
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    for path in folder.glob("libtorch_cpu.*"):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(str(path))
            return Threads(
                *(ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names)
            )
    return Threads()
