# mistake: the source is encoded, but without its padding mask: the encoder gets all True
import torch
import torch.nn.functional as F
from torch import nn


class TranslationLoss(nn.Module):
    def __init__(self, model, pad):
        super().__init__()
        self.model, self.pad = model, pad

    def logits(self, source, target):
        inputs = target[:, :-1]
        L = inputs.shape[1]
        causal = torch.ones(L, L, dtype=torch.bool, device=target.device).tril()
        source_mask = (source != self.pad)[:, None, :]
        context = self.model.encode(source, torch.ones_like(source_mask))
        return self.model.decode(inputs, context, causal, source_mask)

    def forward(self, source, target):
        logits = self.logits(source, target).flatten(0, 1)
        return F.cross_entropy(logits, target[:, 1:].flatten(), ignore_index=self.pad)
