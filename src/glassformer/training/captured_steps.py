"""Forward and backward passes as CUDA graphs: launched at once, without the host between kernels.

    a shape's first steps   host ─ kernel ─ host ─ kernel ─ …     compile and tune what they need
    then one capture        the same calls, recorded with their addresses
    all later steps         host ─ batch into place ─ replay

A small model's kernels take less time than the host needs to launch them, even compiled. Random
numbers follow the generator's seed in a replay as they do without, so that a run that is resumed,
whose first steps are not replayed, computes the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from glassformer.training.parallel import Parallel
from glassformer.training.recipe import Recipe

_FIRST = 3  # steps of a shape before it is captured
_MOST = 4  # graphs: a task has one shape, or another for its last batch

Tensors = dict[str, Tensor]
Shape = tuple[tuple[str, torch.Size], ...]


class _Captured(NamedTuple):
    graph: torch.cuda.CUDAGraph
    tensors: Tensors
    factor: Tensor
    loss: Tensor


def can_capture(recipe: Recipe, parallel: Parallel) -> bool:
    """Whether the steps of a run may be captured: those of one GPU, compiled, a batch each."""
    return (
        parallel.device.type == "cuda"
        and parallel.world_size == 1
        and recipe.compute.compile
        and recipe.compute.precision in ("bf16", "fp8")
        and recipe.batches.accumulate == 1
    )


class CapturedSteps:
    """Losses and gradients of batches on one GPU, replayed for shapes that come again.

    `compute` gives the loss of a batch. Calling this sets the gradients of the parameters, of
    `factor` times the loss, and returns the loss.
    """

    def __init__(
        self,
        compute: Callable[[Tensors], Tensor],
        parameters: Iterable[nn.Parameter],
        context: Callable[[], AbstractContextManager],
    ) -> None:
        self.compute, self.context = compute, context
        self.parameters = list(parameters)
        self.counts: Counter[Shape] = Counter()
        self.captured: dict[Shape, _Captured] = {}
        self.gradients: list[Tensor | None] = []  # one set for all graphs
        self.addresses: list[int] = []
        self.refusal: str | None = None  # why nothing more is captured

    def __call__(self, tensors: Tensors, factor: float) -> Tensor:
        shape = tuple((name, each.shape) for name, each in tensors.items())
        self.counts[shape] += 1
        if self._is_due(shape):
            self._try_to_capture(shape, tensors)
        here = self.captured.get(shape)
        if here is None or self._has_moved():
            return self._run(tensors, factor)
        for name, each in tensors.items():
            here.tensors[name].copy_(each, non_blocking=True)
        here.factor.fill_(factor)
        here.graph.replay()
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        return here.loss.clone()

    def _is_due(self, shape: Shape) -> bool:
        is_new = shape not in self.captured and self.counts[shape] > _FIRST
        return is_new and self.refusal is None and len(self.captured) < _MOST

    def _has_moved(self) -> bool:
        """Whether parameters lie elsewhere than when they were captured: then graphs are void."""
        if self.addresses == [each.data_ptr() for each in self.parameters]:
            return False
        self.captured.clear()
        self.counts.clear()
        self.gradients = []
        return True

    def _run(self, tensors: Tensors, factor: float | Tensor) -> Tensor:
        with self.context():
            loss = self.compute(tensors)
        (loss * factor).backward()
        return loss.detach()

    def _try_to_capture(self, shape: Shape, tensors: Tensors) -> None:
        try:
            self.captured[shape] = self._capture(tensors)
        except RuntimeError as error:  # such as an operation that waits for the GPU
            self.refusal = str(error).split("\n")[0]
            for parameter in self.parameters:
                parameter.grad = None
            torch.cuda.synchronize()

    def _capture(self, tensors: Tensors) -> _Captured:
        device = self.parameters[0].device
        own = {name: each.to(device, copy=True) for name, each in tensors.items()}
        factor = torch.ones((), device=device)
        for parameter in self.parameters:
            parameter.grad = None
        pool = next((each.graph.pool() for each in self.captured.values()), None)
        graph = torch.cuda.CUDAGraph()
        drawn = torch.cuda.get_rng_state(device)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # a graph has memory of its own: what earlier steps used is free
        # cuBLAS keeps its workspace between calls, and others may free it (a compiled model does).
        # Cleared before and after, the graph has one of its own.
        torch._C._cuda_clearCublasWorkspaces()
        # Other threads go on preparing batches meanwhile.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            loss = self._run(own, factor)
            self._keep_gradients()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.set_rng_state(drawn, device)
        self.addresses = [each.data_ptr() for each in self.parameters]
        return _Captured(graph, own, factor, loss)

    def _keep_gradients(self) -> None:
        """Have the gradients in one place: that of the first graph."""
        found = [each.grad for each in self.parameters]
        if not self.gradients:
            self.gradients = found
            return
        pairs = zip(self.gradients, found, strict=True)
        both = [(to, each) for to, each in pairs if to is not None and each is not None]
        for to, each in both:
            to.copy_(each)
