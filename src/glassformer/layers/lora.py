"""Low-rank adaptation (LoRA, Hu et al. 2022): a matrix stays as it is, a narrow product is learned.

    y = x Wᵀ + b + alpha/rank · (x Aᵀ) Bᵀ        A: rank × in, random; B: out × rank, 0 at first

So an adapter changes nothing before it is trained, and has rank · (in + out) weights, not in · out.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LoRALinear(nn.Linear):
    """A linear layer with an adapter; it shares the matrix and the bias of `base`.

    >>> base = nn.Linear(6, 4)
    >>> x = torch.randn(2, 6)
    >>> torch.equal(LoRALinear(base, rank=2, alpha=4.0)(x), base(x))
    True
    """

    def __init__(self, base: nn.Linear, *, rank: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__(
            base.in_features, base.out_features, bias=base.bias is not None, device="meta"
        )
        self.weight, self.bias = base.weight, base.bias
        self.rank, self.scale, self.dropout = rank, alpha / rank, dropout
        self.is_merged = False
        like = {"dtype": base.weight.dtype, "device": base.weight.device}
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features, **like))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank, **like))
        nn.init.uniform_(self.lora_a, -(base.in_features**-0.5), base.in_features**-0.5)

    def forward(  # type: ignore[override]
        self, x: Float[Tensor, "... n_in"]
    ) -> Float[Tensor, "... n_out"]:
        out = F.linear(x, self.weight, self.bias)
        if self.is_merged:
            return out
        narrow = F.linear(F.dropout(x, self.dropout, self.training), self.lora_a)  # … rank
        return out + self.scale * F.linear(narrow, self.lora_b)

    def difference(self) -> Float[Tensor, "n_out n_in"]:
        """What the adapter adds to the matrix: alpha/rank · B A."""
        return self.scale * (self.lora_b @ self.lora_a)

    @torch.no_grad()
    def merge(self) -> None:
        """Add the adapter to the matrix, which from now on is used alone."""
        if not self.is_merged:
            self.weight += self.difference()
            self.is_merged = True

    @torch.no_grad()
    def unmerge(self) -> None:
        """Take the adapter out of the matrix again, up to rounding."""
        if self.is_merged:
            self.weight -= self.difference()
            self.is_merged = False

    def as_linear(self) -> nn.Linear:
        """A plain layer with the matrix as it is now."""
        plain = nn.Linear(
            self.in_features, self.out_features, bias=self.bias is not None, device="meta"
        )
        plain.weight, plain.bias = self.weight, self.bias
        return plain

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, rank={self.rank}, scale={self.scale:g}"
