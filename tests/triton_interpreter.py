"""Kernels of Triton where there is no GPU: a file of tests runs again in Triton's interpreter.

Triton decides when it is imported whether kernels are compiled or interpreted, so this takes a
process in which TRITON_INTERPRET is set. There, tests marked `needs_kernels` run on the CPU;
elsewhere they are for a GPU.
"""

import os
import subprocess
import sys
from types import FunctionType

import pytest

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
needs_kernels = pytest.mark.plain if INTERPRETED else pytest.mark.gpu


def _patch_once() -> None:
    """Have Triton's language replaced once and for good, not anew with each call of a kernel.

    The interpreter spends half of its time on that. In its process nobody needs the original.
    """
    from triton.runtime import interpreter

    replace, done = interpreter._patch_lang, set()

    def replace_once(kernel: FunctionType) -> object:
        if id(kernel.__globals__) not in done:
            done.add(id(kernel.__globals__))
            replace(kernel)
        return interpreter._LangPatchScope()  # with nothing to put back

    interpreter._patch_lang = replace_once


def _sum_at_once() -> None:
    """Have several tiles summed as one of them is, not number by number in Python."""
    from triton.runtime import interpreter

    reduce = interpreter.ReduceOps.generic_reduce

    def sum_or_reduce(self: interpreter.ReduceOps, tiles: tuple) -> object:
        if self.combine_fn.fn.__name__.startswith("_add_"):
            return [self.sum(tile) for tile in tiles]
        return reduce(self, tiles)

    interpreter.ReduceOps.generic_reduce = sum_or_reduce


if INTERPRETED:
    _patch_once()
    _sum_at_once()


def check_in_interpreter(file: str, *, only: str = "") -> None:
    """Run the plain tests of a file in the interpreter, or those whose names have `only`."""
    if INTERPRETED:
        pytest.skip("this is the interpreter's process")
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "plain", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, "-k", only, file],
        env=os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
    assert " passed" in run.stdout
