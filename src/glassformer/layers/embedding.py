"""From token ids to vectors, and their places where these are added as vectors."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional import sinusoidal
from glassformer.functional.positions.rotary import Layout


class TokenEmbedding(nn.Module):
    """A row of a table for each token; `scaled` multiplies by √dim (Vaswani et al. 2017, §3.4).

    >>> TokenEmbedding(5, 4)(torch.tensor([[0, 4]])).shape
    torch.Size([1, 2, 4])
    """

    def __init__(self, vocab_size: int, dim: int, *, scaled: bool = False) -> None:
        super().__init__()
        if min(vocab_size, dim) < 1:
            raise ConfigError(
                f"vocab_size and dim must be at least 1; got vocab_size={vocab_size}, dim={dim}."
            )
        self.scale = dim**0.5 if scaled else 1.0
        self.checks_tokens = True
        self.weight = nn.Parameter(torch.empty(vocab_size, dim))
        # Small enough that tied output logits start near 0, whatever the width.
        nn.init.normal_(self.weight, std=0.02 if not scaled else dim**-0.5)

    def forward(self, tokens: Int[Tensor, "B L"]) -> Float[Tensor, "B L C"]:
        if self.checks_tokens:
            check_tokens(tokens, len(self.weight))
        vectors = F.embedding(tokens, self.weight)
        return vectors if self.scale == 1.0 else vectors * self.scale

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


class LearnedPositions(nn.Module):
    """A learned vector for each place, up to max_len."""

    def __init__(self, max_len: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_len, dim))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, positions: Int[Tensor, "..."]) -> Float[Tensor, "... C"]:
        return F.embedding(positions, self.weight)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


class SinusoidalPositions(nn.Module):
    """The paper's sines and cosines, computed for whatever place is asked for, not stored."""

    def __init__(self, dim: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> None:
        super().__init__()
        self.dim, self.base = dim, base
        self.layout: Layout = layout

    def forward(self, positions: Int[Tensor, "..."]) -> Float[Tensor, "... C"]:
        return sinusoidal(positions, self.dim, base=self.base, layout=self.layout)

    def extra_repr(self) -> str:
        return f"{self.dim}, base={self.base}, {self.layout}"


@contextmanager
def trusting_tokens(model: nn.Module) -> Iterator[None]:
    """Look up tokens that were checked before they reached the GPU.

    To check them there, the host would wait until the GPU has finished all earlier work.
    """
    parts = [part for part in model.modules() if isinstance(part, TokenEmbedding)]
    for part in parts:
        part.checks_tokens = False
    try:
        yield
    finally:
        for part in parts:
            part.checks_tokens = True


def check_tokens(tokens: Tensor, vocab_size: int) -> None:
    """Ids must lie in 0 … vocab_size − 1; on a GPU a wrong one would end the process."""
    if tokens.is_floating_point() or tokens.dtype == torch.bool or tokens.ndim != 2:
        raise ShapeError(
            f"tokens must be whole numbers of shape (B, L); got {tokens.dtype} of shape "
            f"{tuple(tokens.shape)}."
        )
    if torch.compiler.is_compiling() or tokens.is_meta or not tokens.numel():
        return
    low, high = (int(t) for t in tokens.aminmax())
    if low < 0 or high >= vocab_size:
        raise ShapeError(
            f"token ids must lie in 0 … {vocab_size - 1}; got {low} to {high}. "
            "Is this the tokenizer of another model?"
        )
