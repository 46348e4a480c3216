"""Which heads a process has, where a model's attention is split over several.

Under tensor parallelism every rank computes some of the heads of each layer and sees no others. A
rank keeps its own, under the numbers that they have in the model.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from glassformer.errors import TraceError


class HeadShard(NamedTuple):
    """The heads from `first` on, of `total`."""

    first: int
    total: int


def find_head_shard(module: nn.Module, n_heads: int) -> HeadShard | None:
    """Which `n_heads` heads of its layer a module computes here; None: all of them.

    The config names all heads; the parameters of the module lie on the mesh that they are split
    over, and the place of this rank on it says which part it has.
    """
    total = getattr(getattr(module, "config", None), "num_attention_heads", None)
    meshes = list(_find_meshes(module))
    if not meshes or not isinstance(total, int) or n_heads >= total:
        return None
    for mesh, dim in meshes:
        if total == n_heads * mesh.size(dim):
            return HeadShard(mesh.get_local_rank(dim) * n_heads, total)
    raise TraceError(
        f"Heads must be split evenly over ranks to be numbered; here are {n_heads} of {total}."
    )


def is_sharded(model: nn.Module) -> bool:
    """Whether its parameters lie on several processes."""
    return _world_size() > 1 and next(iter(_find_meshes(model)), None) is not None


def as_plain(tensor: Tensor) -> Tensor:
    """A tensor of this process alone: what a collective returns may still be on its way."""
    if type(tensor) is Tensor or isinstance(tensor, nn.Parameter) or _world_size() < 2:
        return tensor
    from torch.distributed._functional_collectives import AsyncCollectiveTensor
    from torch.distributed.tensor import DTensor

    if isinstance(tensor, AsyncCollectiveTensor):
        return tensor.trigger_wait()
    if isinstance(tensor, DTensor):
        raise TraceError(
            "what a rank records must be its own tensors; this one is a DTensor. Use the plan's "
            "use_local_output=True"
        )
    return tensor


def find_rank() -> tuple[int, int] | None:
    """The rank of this process, and how many there are; None outside of a group."""
    if _world_size() < 2:
        return None
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def _world_size() -> int:
    group = torch.distributed
    if not group.is_available() or not group.is_initialized():
        return 1
    return group.get_world_size()


def _find_meshes(module: nn.Module) -> Any:
    """The meshes, and the dimensions of them, over which parameters are split."""
    if _world_size() < 2:
        return
    from torch.distributed.tensor import DTensor

    for parameter in module.parameters():
        if isinstance(parameter, DTensor):
            for dim, placement in enumerate(parameter.placements):
                if placement.is_shard():
                    yield parameter.device_mesh, dim
