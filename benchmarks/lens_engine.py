"""vllm-lens beside us: an engine in a process of its own, since that plug-in makes all eager.

pip install --no-deps --ignore-requires-python vllm-lens cloudpickle zstandard

vllm-lens 1.3 asks for vLLM 0.30 and Python 3.12; with vLLM 0.32 and Python 3.11 it is outside of
what its authors have tested.
"""

import os
import time
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.pool import Pool
from types import TracebackType
from typing import Any

import serving

LENS = "vllm-lens, nothing kept"
RESIDUAL = "vllm-lens, residual"
QUERIES = "vllm-lens, q and k"

_engines: list[Any] = []  # the one of the process that serves


class LensEngine:
    """An engine with vllm-lens; every layer is kept."""

    def __init__(self, folder: str, length: int, n_layers: int) -> None:
        layers = list(range(n_layers))
        self.asked: dict[str, dict[str, list[int]] | None] = {
            LENS: None,
            RESIDUAL: {"output_residual_stream": layers},
            QUERIES: {"output_qk": layers},
        }
        self.pool: Pool = get_context("spawn").Pool(1, _start, (folder, length))

    def __enter__(self) -> "LensEngine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.pool.terminate()

    def serve(
        self, name: str, prompts: list[list[int]], n_tokens: int, clock: str
    ) -> tuple[float, list[list[int]]]:
        """The seconds that it took, and the tokens that were written."""
        return self.pool.apply(_serve, (prompts, n_tokens, self.asked[name], clock))


def is_installed() -> bool:
    return find_spec("vllm_lens") is not None


def _start(folder: str, length: int) -> None:
    os.environ["VLLM_PLUGINS"] = "activations"  # as it calls itself
    _engines.append(serving.build_engine(folder, length))


def _serve(
    prompts: list[list[int]], n_tokens: int, asked: dict[str, list[int]] | None, clock: str
) -> tuple[float, list[list[int]]]:
    (engine,) = _engines
    run = serving.serve(engine, prompts, n_tokens, asked)
    read = getattr(time, clock)
    engine.reset_prefix_cache()
    start = read()
    found = run()
    return read() - start, found
