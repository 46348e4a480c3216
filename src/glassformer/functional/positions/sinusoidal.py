"""Sinusoidal positional encoding: waves from fast to slow identify each position."""

from typing import Literal

import torch
from jaxtyping import Float, Real
from torch import Tensor

from glassformer.errors import ConfigError


def sinusoidal(
    positions: int | Real[Tensor, "..."],
    dim: int,
    *,
    base: float | int = 10000.0,
    layout: Literal["interleaved", "half"] = "interleaved",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Float[Tensor, "... C"]:
    """The positional encoding that is added to embeddings (Vaswani et al. 2017, §3.5).

    ::

        table[p, 2i]     = sin(p / base^(2i / dim))
        table[p, 2i + 1] = cos(p / base^(2i / dim))

    `layout` "half" puts all sines before all cosines, as in some trained models. `positions` is a
    length, meaning 0 … length − 1, or a tensor of any shape with any real values: the formula has
    no largest length.

    >>> sinusoidal(3, 4)
    tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
            [ 0.8415,  0.5403,  0.0100,  0.9999],
            [ 0.9093, -0.4161,  0.0200,  0.9998]])
    >>> sinusoidal(torch.tensor([[0.5], [1e6]]), 6).shape
    torch.Size([2, 1, 6])
    """
    if dim < 2 or dim % 2:
        raise ConfigError(
            f"dim must be even and at least 2 (a sine and a cosine per frequency); got dim={dim}."
        )
    if base <= 1:
        raise ConfigError(
            f"base must be greater than 1, so that frequencies decrease; got base={base}."
        )
    if layout not in ("interleaved", "half"):
        raise ConfigError(f"layout is 'interleaved' or 'half'; got {layout!r}.")
    # float64: at position 1,000,000 the angles of float32 (24 bits) are off by hundredths.
    if isinstance(positions, int):
        if positions < 0:
            raise ConfigError(f"A length must be at least 0; got positions={positions}.")
        places = torch.arange(positions, dtype=torch.float64, device=device)
    else:
        places = positions.to(device=device, dtype=torch.float64)
    exponents = torch.arange(0, dim, 2, dtype=torch.float64, device=places.device) / dim
    angles = places[..., None] * base**-exponents  # (..., C / 2)
    waves = (angles.sin(), angles.cos())
    table = torch.cat(waves, -1) if layout == "half" else torch.stack(waves, -1).flatten(-2)
    return table.to(dtype)
