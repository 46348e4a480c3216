"""A trace that grows while a model runs, and steps of generation put in the order of beams."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from glassformer.tracing.trace import Run, Trace

MOST_OPEN = 4  # runs that may still go on: guidance alternates between two caches


class LiveTrace(Trace):
    """A trace that is still growing: looking at it puts together what has come so far."""

    def __init__(self, finish: Callable[[], None], model: dict[str, Any]) -> None:
        self._recorded: list[Run] = []
        self._finish = finish
        super().__init__(self._recorded, model)

    def add(self, run: Run) -> None:
        self._recorded.append(run)

    @property
    def recorded(self) -> list[Run]:
        return self._recorded

    @property
    def runs(self) -> list[Run]:  # type: ignore[override]
        self._finish()
        return self._recorded

    @runs.setter
    def runs(self, _runs: list[Run]) -> None:
        pass


def in_order(chunks: Sequence[Tensor], order: Sequence[Tensor]) -> list[Tensor]:
    """Steps as the beams that are alive now would have them: they may have changed places.

    `order` holds, for each step, which rows went on after it.

    >>> first, second = torch.tensor([[1], [2]]), torch.tensor([[3], [4]])
    >>> after_first, after_second = torch.tensor([1, 1]), torch.tensor([0, 1])
    >>> torch.cat(in_order([first, second], [after_first, after_second]), dim=1).tolist()
    [[2, 3], [2, 4]]
    """
    if len(chunks) < 2:
        return list(chunks)
    ordered, rows = [chunks[-1]], None
    for chunk, moved in zip(chunks[-2::-1], order[-2::-1], strict=True):
        rows = moved if rows is None else moved[rows]
        stays = len(chunk) == 1 or torch.equal(rows, torch.arange(len(rows)))
        ordered.insert(0, chunk if stays else chunk[rows.to(chunk.device)])
    return ordered
