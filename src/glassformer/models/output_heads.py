"""Output heads: from hidden states to logits for tokens or classes."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.layers import norm_maker
from glassformer.layers.feed_forward import ACTIVATIONS
from glassformer.models.config import Config


class PendingLogits(NamedTuple):
    """Logits before their last product, which is larger than all else that a model computes.

    Training computes the loss from these parts, without holding all logits at once.
    """

    hidden: Float[Tensor, "B L C"]
    weight: Float[Tensor, "V C"]
    bias: Float[Tensor, " V"] | None = None

    def compute(self) -> Float[Tensor, "B L V"]:
        return F.linear(self.hidden, self.weight, self.bias)


class NextTokenHead(nn.Module):
    """A score for every token: the hidden state times a matrix, the embedding's where tied."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.output = config.output
        if not self.output.tied:
            self.weight = nn.Parameter(torch.empty(config.vocab_size, config.dim))
            nn.init.normal_(self.weight, std=0.02)
        if self.output.bias:
            self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(
        self, hidden: Float[Tensor, "B L C"], embedding: Float[Tensor, "V C"]
    ) -> Float[Tensor, "B L V"]:
        return self.prepare(hidden, embedding).compute()

    def prepare(
        self, hidden: Float[Tensor, "B L C"], embedding: Float[Tensor, "V C"]
    ) -> PendingLogits:
        """Everything but the product with the output matrix."""
        if self.output.scale != 1.0:
            hidden = hidden * self.output.scale
        weight = embedding if self.output.tied else self.weight
        return PendingLogits(hidden, weight, self.bias if self.output.bias else None)


class MaskedTokenHead(nn.Module):
    """From a vector to a score for each token: dense, activation, norm, then the embedding."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.activation = config.activation
        has_bias = config.output.head_bias
        self.dense = nn.Linear(config.dim, config.dim, bias=has_bias)
        self.norm = norm_maker(config.norms.kind, config.dim, eps=config.norms.eps, bias=has_bias)()
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(
        self, hidden: Float[Tensor, "B L C"], embedding: Float[Tensor, "V C"]
    ) -> Float[Tensor, "B L V"]:
        return self.prepare(hidden, embedding).compute()

    def prepare(
        self, hidden: Float[Tensor, "B L C"], embedding: Float[Tensor, "V C"]
    ) -> PendingLogits:
        """Everything but the product with the embedding."""
        x = self.norm(ACTIVATIONS[self.activation](self.dense(hidden)))
        return PendingLogits(x, embedding, self.bias)


class ClassificationHead(nn.Module):
    """From the first token's vector to a score for each class (Devlin et al. 2019, §4.1)."""

    def __init__(self, dim: int, n_classes: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.dense = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, n_classes)

    def forward(self, hidden: Float[Tensor, "B L C"]) -> Float[Tensor, "B n"]:
        x = torch.tanh(self.dense(F.dropout(hidden[:, 0], self.dropout, self.training)))
        return self.out(F.dropout(x, self.dropout, self.training))
