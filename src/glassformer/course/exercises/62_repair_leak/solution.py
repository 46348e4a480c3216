"""The encoder reads the source, and nothing else."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TranslationLoss(nn.Module):
    """−log p(next target token | source, target so far), mean over all targets except padding"""

    def __init__(self, model: Any, pad: int) -> None:
        super().__init__()
        self.model, self.pad = model, pad

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        inputs = target[:, :-1]
        L = inputs.shape[1]
        causal = torch.ones(L, L, dtype=torch.bool, device=target.device).tril()
        source_mask = (source != self.pad)[:, None, :]
        context = self.model.encode(source, source_mask)
        return self.model.decode(inputs, context, causal, source_mask)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        logits = self.logits(source, target).flatten(0, 1)  # (BL, V)
        return F.cross_entropy(logits, target[:, 1:].flatten(), ignore_index=self.pad)
