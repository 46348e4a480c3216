"""Kernels in C: compiled once for each chip by the system's compiler, kept in the user's cache.

Where there is no compiler, there is no library, and PyTorch computes the same.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from platformdirs import user_cache_path

FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC")
PROCESSOR = Path(__file__).with_name("processor.c")
VECTORS = Path(__file__).with_name("vectors.h")
VECTOR_FLAGS = ("-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")  # of what includes it


class Threads(NamedTuple):
    """Addresses of OpenMP's functions; None where they are not found, and one thread works."""

    parallel: int | None = None
    thread: int | None = None
    n_threads: int | None = None


def load_library(
    source: Path, flags: tuple[str, ...], *, included: tuple[Path, ...] = ()
) -> ctypes.CDLL | None:
    """The functions of a C file, compiled if that has not been done; None if it cannot be."""
    with suppress(OSError, subprocess.SubprocessError):
        library = ctypes.CDLL(str(_build_library(source, included, flags)))
        return library if library.fits_processor() else None
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


def _build_library(source: Path, included: tuple[Path, ...], flags: tuple[str, ...]) -> Path:
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc"))), None)
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    tuned = "-march=native" if platform.machine() in ("x86_64", "AMD64") else "-mcpu=native"
    flags = (*FLAGS, *flags, tuned)
    texts = [each.read_bytes() for each in (source, PROCESSOR, *included)]
    key = repr((texts, compiler, flags, describe_chip()))
    name = f"{source.parent.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    folder = find_cache()
    if not (folder / name).is_file():
        with tempfile.TemporaryDirectory(dir=folder) as building:
            built = Path(building) / name
            command = [compiler, *flags, str(source), str(PROCESSOR), "-o", str(built), "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
            built.replace(folder / name)  # whole or not at all: other processes may build it, too
    return folder / name


def find_cache() -> Path:
    """The user's folder for what is made once on a machine; a fresh one where it cannot be."""
    folder = user_cache_path("glassformer")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        folder = _make_folder()
    return folder


@cache
def _make_folder() -> Path:
    """One for this process."""
    return Path(tempfile.mkdtemp(prefix="glassformer-"))


def describe_chip() -> str:
    """What tells two chips apart that share a home folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        known = ("Features", "flags", "CPU part", "model name")
        return "".join(sorted({line for line in lines if line.startswith(known)}))
    return platform.processor() + platform.machine()
