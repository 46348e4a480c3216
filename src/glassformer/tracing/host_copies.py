"""Copies on the host of what a model was given, which a GPU makes before it computes.

Asking for the numbers after the model has run would wait for all that it computes.
"""

import torch
from torch import Tensor


class HostCopies:
    """Copies that were begun; their numbers may be read after `wait`.

    >>> copies, given = HostCopies(), torch.tensor([3, 1])
    >>> copied = copies.begin(given)
    >>> given[0] = 7
    >>> copies.wait()
    >>> copied.tolist()
    [3, 1]
    """

    def __init__(self) -> None:
        self._ends: dict[torch.cuda.Stream, torch.cuda.Event] = {}

    def begin(self, tensor: Tensor) -> Tensor:
        """What the tensor holds now, however it is changed later."""
        tensor = tensor.detach()
        if not tensor.is_cuda or type(tensor) is not Tensor:
            return tensor.clone()
        if torch.cuda.is_current_stream_capturing():  # it has no numbers yet
            return tensor
        copied = tensor.to("cpu", non_blocking=True)
        stream, end = torch.cuda.current_stream(tensor.device), torch.cuda.Event()
        end.record(stream)
        self._ends[stream] = end
        return copied

    def wait(self) -> None:
        """Until all copies are complete."""
        while self._ends:
            _, end = self._ends.popitem()
            end.synchronize()
