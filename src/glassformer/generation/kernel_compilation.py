"""Kernels of a step are compiled side by side before it first runs, not one after the other.

A step launches some ten kernels that Triton compiles at their first launch, each for a third of a
second on one core: its compiler and assembler work, then a C compiler builds what launches it.
`compile_together` goes through a step in which launches only ask for a kernel, so that these
programs run at once. What Triton does in Python takes turns all the same.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch

from glassformer.compilation import announce

_asked_for: ContextVar[list[Any] | None] = ContextVar("asked_for", default=None)


def prepare_launch(kernel: Any, grid: tuple[int, ...], **options: Any) -> Callable[..., None]:
    """What launches a kernel with these options, or within `compile_together` asks for it."""
    asked_for = _asked_for.get()
    if asked_for is None:
        return partial(kernel[grid], **options)

    def ask(*arguments: Any, **constants: Any) -> None:
        asked_for.append(kernel.warmup(*arguments, grid=grid, **options, **constants))

    return ask


def compile_together(run: Callable[[], object], device: torch.device) -> None:
    """Compile what `run` launches by `prepare_launch`; none of it is launched.

    What `run` does otherwise is done, with results that mean nothing.
    """
    from triton import AsyncCompileMode

    asked_for: list[Any] = []
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count()))
        with AsyncCompileMode(pool):
            token = _asked_for.set(asked_for)
            try:
                run()
            finally:
                _asked_for.reset(token)
            if any(hasattr(each, "result") for each in asked_for):
                stack.enter_context(announce())

        def load(kernel: Any) -> object:
            torch.cuda.set_device(device)
            return kernel.run  # loads it, if that has not been done

        compiled = [each.result() if hasattr(each, "result") else each for each in asked_for]
        list(pool.map(load, {id(each): each for each in compiled}.values()))
