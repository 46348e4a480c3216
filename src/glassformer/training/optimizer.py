"""The optimizer: Adam as in the paper, AdamW, Muon, and gradient clipping."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.layers import TokenEmbedding
from glassformer.layers.embedding import LearnedPositions
from glassformer.settings import NonNegative, check_bounds
from glassformer.training.fused_adam import FusedAdam, can_fuse
from glassformer.training.muon import Muon, split_parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Optimizer:
    """Settings of Adam (Kingma and Ba 2015; Vaswani et al. 2017, §5.3), AdamW or Muon.

    Weight decay applies to matrices only. Norms and biases have few parameters and a natural scale;
    the embedding of a rare token would decay between two of its updates.
    """

    kind: Literal["adam", "adamw", "muon"] = "adamw"
    betas: tuple[float, ...] = (0.9, 0.98)
    eps: NonNegative = 1e-9
    weight_decay: NonNegative = 0.0
    decay_embeddings: bool = False
    clip: NonNegative = 1.0  # largest norm of all gradients together; 0: no clipping

    def __post_init__(self) -> None:
        check_bounds(self, "optimizer.")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(
                f"optimizer.betas must be two numbers from 0 to below 1; got {self.betas}."
            )

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """Build the optimizer of a model; the loop sets its learning rate before each step.

        >>> model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
        >>> built = Optimizer(weight_decay=0.1).build(model)
        >>> [(len(group["params"]), group["weight_decay"]) for group in built.param_groups]
        [(1, 0.1), (3, 0.0)]
        """
        decaying, steady = parameter_groups(model, decay_embeddings=self.decay_embeddings)
        groups: list[dict[str, Any]] = [
            {"params": decaying, "weight_decay": self.weight_decay},
            {"params": steady, "weight_decay": 0.0},
        ]
        if self.kind == "muon":
            matrices, row_counts = split_parameters(model)
            taken = {id(matrix) for matrix in matrices}
            groups[0]["params"] = [p for p in decaying if id(p) not in taken]
            groups.append(
                {"params": matrices, "row_counts": row_counts, "weight_decay": self.weight_decay}
            )
        groups = [group for group in groups if group["params"]]
        betas = (self.betas[0], self.betas[1])
        # Without weight decay Adam is AdamW.
        is_adamw = self.kind == "adamw" or (self.kind == "adam" and not self.weight_decay)
        if is_adamw and can_fuse(model.parameters()):
            return FusedAdam(groups, lr=0.0, betas=betas, eps=self.eps)
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "muon": Muon}[self.kind]
        fused = all(p.device.type in ("cpu", "cuda") for p in model.parameters())
        return kind(groups, lr=0.0, betas=betas, eps=self.eps, fused=fused)


def parameter_groups(
    model: nn.Module, *, decay_embeddings: bool = False
) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters with weight decay, and those without."""
    tables = (TokenEmbedding, LearnedPositions, nn.Embedding)
    embeddings = {
        id(p) for part in model.modules() if isinstance(part, tables) for p in part.parameters()
    }
    decaying, steady = [], []
    for parameter in model.parameters():
        is_steady = id(parameter) in embeddings and not decay_embeddings
        (steady if parameter.ndim < 2 or is_steady else decaying).append(parameter)
    return decaying, steady


def clip_gradients(
    parameters: Iterable[nn.Parameter],
    most: float,
    *,
    optimizer: torch.optim.Optimizer | None = None,
) -> Tensor:
    """Clip the norm of all gradients together to `most`, and return the norm before clipping.

    The norm stays on the device: reading it would synchronize with the GPU. 0 disables clipping.
    Given a `FusedAdam`, gradients stay as they are, and its next step scales them as it reads them.
    """
    kept = [p for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm([p.grad for p in kept])  # type: ignore[misc]
    if isinstance(optimizer, FusedAdam):
        optimizer.factor = (most / (norm + 1e-6)).clamp(max=1.0) if most else None
    elif most:
        torch.nn.utils.clip_grads_with_norm_(kept, most, norm)
    return norm
