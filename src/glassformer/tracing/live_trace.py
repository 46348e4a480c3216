"""A trace that grows while a model runs, and the steps of generation in the order of its beams."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from glassformer.tracing.trace import Run, Trace


class LiveTrace(Trace):
    """A trace that is still growing: reading it assembles what has been recorded so far."""

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


def follow_beams(chunks: Sequence[Tensor], order: Sequence[Tensor]) -> list[Tensor]:
    """The steps as the beams that are alive now took them: beams may have changed places.

    `order` holds, for each step, the rows that were continued after it.

    >>> first, second = torch.tensor([[1], [2]]), torch.tensor([[3], [4]])
    >>> after_first, after_second = torch.tensor([1, 1]), torch.tensor([0, 1])
    >>> torch.cat(follow_beams([first, second], [after_first, after_second]), dim=1).tolist()
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
