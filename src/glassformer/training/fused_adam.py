"""AdamW as one kernel, bound by memory: all parameters, and the gradients' clip on the way.

    p, g, m, v ─read→  g · factor ─ moments ─ update  ─write→ p, m, v      28 bytes a number

PyTorch's own fused step computes partly in float64, and a clip before it reads and writes all
gradients once more. Here gradients are only read, and nothing waits for the device. The kernel
gets addresses in a table, which is kept while they are the same.
"""

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.functional.triton_support import triton_refusal

Row = tuple[int, ...]  # addresses of p, g, m, v and step, size, bits of the weight decay
_SIZE, _COLUMNS = 5, 7


class _Settings(NamedTuple):
    """What the tensors of a launch have in common."""

    lr: float
    betas: tuple[float, float]
    eps: float


class _Group(NamedTuple):
    """The tensors of a group's parameters that have gradients."""

    settings: dict[str, Any]
    p: list[Tensor]
    g: list[Tensor]
    m: list[Tensor]
    v: list[Tensor]
    steps: list[Tensor]


class _Table(NamedTuple):
    """What a launch updates, and copies of it on the device."""

    rows: list[Row]
    rows_there: Tensor
    blocks_there: Tensor


def can_fuse(parameters: Iterable[Tensor]) -> bool:
    """Whether the kernel can update these: plain float32 on one device that runs Triton.

    >>> can_fuse([torch.ones(3)])  # no GPU
    False
    """
    parameters = list(parameters)
    if not parameters or triton_refusal(parameters[0].device) is not None:
        return False
    return _are_plain(parameters)


def _are_plain(tensors: Sequence[Tensor]) -> bool:
    """Whether all are dense float32 on one device, each number beside the next."""
    if not {type(each) for each in tensors} <= {Tensor, nn.Parameter}:  # such as DTensor
        return False
    kinds = {(each.dtype, each.layout, each.device) for each in tensors}
    is_one = kinds == {(torch.float32, torch.strided, tensors[0].device)}
    return is_one and all(map(Tensor.is_contiguous, tensors))


class FusedAdam(torch.optim.AdamW):
    """`torch.optim.AdamW(fused=True)`, with the same state, by a kernel of ours.

    `factor`, a number on the device, scales the gradients of the next step as they are read. What
    the kernel cannot update, PyTorch does, for that step.

    >>> weight = nn.Parameter(torch.ones(2))
    >>> optimizer = FusedAdam([weight], lr=0.5)
    >>> weight.grad = torch.tensor([3.0, -4.0])
    >>> optimizer.factor = torch.tensor(0.2)
    >>> optimizer.step()
    >>> weight.data, optimizer.state[weight]["exp_avg"]
    (tensor([0.4950, 1.4950]), tensor([ 0.0600, -0.0800]))
    """

    factor: Float[Tensor, ""] | None = None
    _tables: tuple[_Table, ...] = ()

    def __init__(
        self,
        params: Iterable[Any],
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, fused=True)

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        self.factor = None  # it was for these gradients, even if a scaler skipped their step

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update the parameters that have gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = [self._gather(group) for group in self.param_groups]
        # With a scale, a scaler's, gradients are still multiplied by that.
        if getattr(self, "grad_scale", None) is None and _can_launch(groups):
            self._launch(groups)
        else:
            self._scale_gradients()
            super().step()
        self.factor = None
        return loss

    def _gather(self, group: dict[str, Any]) -> _Group:
        found = _Group(group, [], [], [], [], [])
        self._init_group(group, found.p, found.g, found.m, found.v, [], found.steps)
        return found

    def _launch(self, groups: list[_Group]) -> None:
        from glassformer.training import fused_adam_kernels as kernels

        launches = _list_rows(groups)
        if not launches:
            return
        p, m, v, steps = (
            list(chain.from_iterable(getattr(group, name) for group in groups))
            for name in ("p", "m", "v", "steps")
        )
        found_inf: Tensor | None = getattr(self, "found_inf", None)  # a scaler's: not 0 to skip
        n_done = 1 if found_inf is None else (found_inf == 0).float().sum()
        torch._foreach_add_(steps, n_done)  # pyright: ignore[reportPrivateImportUsage]
        last = [*self._tables, *[None] * len(launches)]
        self._tables = tuple(
            _update_table(table, rows, p[0].device, kernels.BLOCK)
            for table, rows in zip(last, launches.values(), strict=False)
        )
        with torch.cuda.device_of(p[0]):
            for settings, table in zip(launches, self._tables, strict=True):
                if len(table.blocks_there):
                    kernels.adam_kernel[(len(table.blocks_there),)](
                        table.rows_there,
                        table.blocks_there,
                        self.factor,
                        found_inf,
                        settings.lr,
                        settings.eps,
                        *(1 - beta for beta in settings.betas),
                        *(math.log(beta) if beta else -math.inf for beta in settings.betas),
                        COLUMNS=_COLUMNS,
                        BLOCK=kernels.BLOCK,
                        num_warps=kernels.WARPS,  # pyright: ignore[reportCallIssue]
                    )
        torch.autograd.graph.increment_version([*p, *m, *v])

    def _scale_gradients(self) -> None:
        if self.factor is not None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(self.factor.to(parameter.grad.device))


def _can_launch(groups: list[_Group]) -> bool:
    tensors = [tensor for group in groups for tensors in group[1:] for tensor in tensors]
    if not tensors:
        return True
    device = tensors[0].device
    return (
        triton_refusal(device) is None
        and all(_is_common(group.settings) for group in groups)
        and _are_plain(tensors)
        and all(not each.data_ptr() % 16 for group in groups for each in chain(*group[1:5]))
        and not (device.type == "cuda" and torch.cuda.is_current_stream_capturing())
    )


def _is_common(settings: dict[str, Any]) -> bool:
    others = ("amsgrad", "maximize", "capturable", "differentiable")
    has_number = not isinstance(settings["lr"], Tensor)
    return has_number and settings["fused"] and not any(settings[name] for name in others)


def _list_rows(groups: list[_Group]) -> dict[_Settings, list[Row]]:
    """The rows of each launch: one, where groups differ in weight decay alone."""
    launches: dict[_Settings, list[Row]] = {}
    for group in groups:
        of = group.settings
        (decay,) = struct.unpack("i", struct.pack("f", of["weight_decay"]))
        rows = [
            (*(each.data_ptr() for each in tensors), tensors[0].numel(), decay)
            for tensors in zip(*group[1:], strict=True)
        ]
        if rows:
            settings = _Settings(float(of["lr"]), of["betas"], of["eps"])
            launches.setdefault(settings, []).extend(rows)
    return launches


def _update_table(last: _Table | None, rows: list[Row], device: torch.device, block: int) -> _Table:
    if last is not None and last.rows == rows and last.rows_there.device == device:
        return last
    sizes = [row[_SIZE] for row in rows]
    if last is not None and [row[_SIZE] for row in last.rows] == sizes:
        blocks = last.blocks_there
    else:
        blocks = _upload(_number_blocks(sizes, block), device)
    return _Table(rows, _upload(torch.tensor(rows).view(-1, _COLUMNS), device), blocks)


def _number_blocks(sizes: list[int], block: int) -> Tensor:
    """For each program its tensor, and the number of its block in that."""
    counts = torch.tensor([-(-size // block) for size in sizes], dtype=torch.int64)
    owners = torch.repeat_interleave(counts)
    firsts = (counts.cumsum(0) - counts)[owners]
    return torch.stack([owners, torch.arange(len(owners)) - firsts], 1).int()


def _upload(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy to the device without waiting, from pinned memory that nothing else is written to."""
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
