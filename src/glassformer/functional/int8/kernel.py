"""The C kernel: compiled once for each chip by the system's compiler, and kept in the user's cache.

PyTorch's own int8 product has no dot-product instructions on Arm: there it is slower than float32
(see benchmarks/RESULTS.md). Where there is no compiler, `find_kernel` says None.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from platformdirs import user_cache_path
from torch import Tensor

SOURCE = Path(__file__).with_name("kernel.c")
# Without contraction into fused products, a row is the same to the bit in any batch.
FLAGS = (
    *("-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *("-std=gnu11", "-shared", "-fPIC"),
)
ONE_THREAD = 1 << 16  # products below which waking another thread costs more than it saves

Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


@functools.cache
def find_kernel() -> Kernel | None:
    """`(x, weight, scale, bias) -> y` for contiguous float32 x on a CPU, if it can be built."""
    with suppress(OSError, subprocess.SubprocessError, AttributeError):
        return _wrap_library(ctypes.CDLL(str(_build_library())))
    return None


def _wrap_library(library: ctypes.CDLL) -> Kernel:
    function = library.int8_linear
    pointer = ctypes.c_void_p
    function.argtypes = [pointer] * 5 + [ctypes.c_long] * 3 + [pointer] * 3 + [ctypes.c_uint]
    threads = _find_threads()

    def multiply(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        n_out, n_in = weight.shape
        n_rows = x.numel() // n_in
        y = x.new_empty((*x.shape[:-1], n_out))
        failed = function(
            x.data_ptr(),
            weight.data_ptr(),
            scale.data_ptr(),
            None if bias is None else bias.data_ptr(),
            y.data_ptr(),
            n_rows,
            n_out,
            n_in,
            *threads,
            torch.get_num_threads() if n_rows * n_out * n_in > ONE_THREAD else 1,
        )
        if failed:
            raise MemoryError(f"No memory for {n_rows * n_in:,} rounded activations.")
        return y

    return multiply


def _find_threads() -> tuple[int | None, int | None, int | None]:
    """The functions of the very OpenMP that torch runs on: two pools of threads would compete."""
    folder = Path(torch.__file__).parent / "lib"
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    for path in folder.glob("libtorch_cpu.*"):
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(str(path))
            first, second, third = (
                ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names
            )
            return first, second, third
    return None, None, None


def _build_library() -> Path:
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc"))), None)
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    tuned = "-march=native" if platform.machine() in ("x86_64", "AMD64") else "-mcpu=native"
    key = repr((SOURCE.read_bytes(), compiler, FLAGS, tuned, _describe_chip()))
    name = f"int8-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    folder = user_cache_path("glassformer")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="glassformer-"))
    if not (folder / name).is_file():
        with tempfile.TemporaryDirectory(dir=folder) as building:
            built = Path(building) / name
            command = [compiler, *FLAGS, tuned, str(SOURCE), "-o", str(built), "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
            built.replace(folder / name)  # whole or not at all: other processes may build it, too
    return folder / name


def _describe_chip() -> str:
    """What tells two chips apart that share a home folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        known = ("Features", "flags", "CPU part", "model name")
        return "".join(sorted({line for line in lines if line.startswith(known)}))
    return platform.processor() + platform.machine()
