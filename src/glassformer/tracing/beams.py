"""Beams: the steps of generation in the order of the sequences that are alive now."""

from collections.abc import Sequence

import torch
from torch import Tensor


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
