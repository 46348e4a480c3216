"""Short prompts read by CUDA graphs: up to some hundred tokens, the host takes longer than the GPU.

A graph has a fixed shape, so prompts are filled up to one of a few widths, on the right, where no
token of the prompt looks. What that leaves in the memory is overwritten before it is read. The
first prompt of a width is read without a graph, since capturing takes as long as reading it.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.generation.cuda_prompts import read_prompts
from glassformer.generation.cuda_step import CudaStep
from glassformer.generation.program_shapes import power_above

_LEAST = 16  # tokens of the smallest width
_MOST = 512  # of all rows: with more, the GPU is what takes time


class Graph(Protocol):
    """What a CUDA graph does."""

    def replay(self) -> None: ...


class _Captured(NamedTuple):
    tokens: Int[Tensor, "B width"]
    graph: Graph


class PromptGraphs:
    """Reads prompts into all rows of a step."""

    def __init__(self, step: CudaStep) -> None:
        self.step = step
        self.known: dict[tuple[int, bool], _Captured | None] = {}  # None: seen once

    def read(
        self,
        tokens: Int[Tensor, "B L"],
        capture: Callable[[Callable[[], object]], Graph],
        *,
        is_padded: bool,
    ) -> None:
        """Read prompts, of which `step.missing` tells the padding on the left.

        `capture` makes a graph of what a function launches.
        """
        (B, L), missing = tokens.shape, self.step.missing if is_padded else None
        width = max(_LEAST, power_above(L))
        if B * width > _MOST or width > self.step.capacity:
            read_prompts(self.step, tokens, missing)
            return
        key = width, is_padded
        if key not in self.known:
            self.known[key] = None
            read_prompts(self.step, tokens, missing)
            return
        known = self.known[key]
        if known is None:
            held = torch.zeros(B, width, dtype=torch.long, device=tokens.device)
            read_prompts(self.step, held, missing)  # compiles what this shape needs
            graph = capture(lambda: read_prompts(self.step, held, missing))
            known = self.known[key] = _Captured(held, graph)
        known.tokens[:, :L] = tokens
        known.graph.replay()
