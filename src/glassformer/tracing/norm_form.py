"""A norm as a formula: with its statistics frozen, it is linear.

norm(x) = (x − mean) / size · gain + bias, where the mean is zero for RMSNorm. For one x, `size` and
`mean` are numbers; held fixed, the norm of a sum is the sum of the norms of its terms.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.errors import TraceError
from glassformer.tracing.offloading import read_weight

_USUAL_EPS = [1e-5, 1e-6, 1e-12, 0.0]  # where a module does not say
_EPS = ("eps", "variance_epsilon", "epsilon", "norm_eps", "layer_norm_eps")


@dataclass(eq=False, frozen=True, kw_only=True)
class NormForm:
    """LayerNorm or RMSNorm: whether it centres, its gain and bias for each feature, its eps."""

    is_centred: bool
    eps: float
    gain: Float[Tensor, " C"] | None = None
    bias: Float[Tensor, " C"] | None = None

    @classmethod
    def of(cls, module: nn.Module, before: Tensor, after: Tensor) -> "NormForm":
        """The formula that a module follows, held against what it has just computed.

        Where the mean of x is zero, LayerNorm and RMSNorm agree; then the module is run once more.
        """
        forms = [form for form in cls._candidates(module) if form._explains(before, after)]
        if len({form.is_centred for form in forms}) > 1:
            shifted = before + before.abs().amax()
            with torch.no_grad():
                after = module.forward(shifted)
            forms = [form for form in forms if form._explains(shifted, after)]
        if not forms:
            raise TraceError(f"{type(module).__name__} is neither a LayerNorm nor an RMSNorm")
        return forms[0]

    def _explains(self, before: Tensor, after: Tensor) -> bool:
        before, after = (x.reshape(-1, x.shape[-1])[-8:] for x in (before, after))
        scale = after.abs().amax().double().clamp(min=1e-30)
        tolerance = 8 * max(torch.finfo(before.dtype).eps, torch.finfo(after.dtype).eps)
        return bool((self(before.double()) - after.double()).abs().amax() / scale <= tolerance)

    @classmethod
    def _candidates(cls, module: nn.Module) -> Iterator["NormForm"]:
        weight, bias = (_find_vector(module, name) for name in ("weight", "bias"))
        known: list[Any] = [getattr(module, name, None) for name in _EPS]
        eps = [float(each) for each in known if isinstance(each, int | float)] or _USUAL_EPS
        gains = [weight] if weight is None else [weight, 1 + weight.double()]
        for gain in gains:
            for is_centred in (True, False):
                for each in eps:
                    yield cls(is_centred=is_centred, eps=each, gain=gain, bias=bias)

    def __call__(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
        """The norm of x, computed as modules do: in the precision of x, RMSNorm's in float32."""
        gain = None if self.gain is None else self.gain.to(x.device)
        if self.is_centred:
            gain, bias = (t if t is None else t.to(x) for t in (gain, self.bias))
            return F.layer_norm(x, x.shape[-1:], gain, bias, self.eps)
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        exact = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + self.eps)
        y = exact.to(x.dtype)
        y = y if gain is None else (gain * y).to(x.dtype)
        return y if self.bias is None else y + self.bias.to(x)

    def push(self, part: Float[Tensor, "... C"], x: Float[Tensor, "... C"]) -> Tensor:
        """What a part of x becomes, with the statistics of x; the parts of x add up."""
        if self.is_centred:
            part = part - part.mean(-1, keepdim=True)
            x = x - x.mean(-1, keepdim=True)
        part = part / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return part if self.gain is None else part * self.gain.to(part)

    def pull(self, direction: Float[Tensor, "... C"], x: Float[Tensor, "... C"]) -> Tensor:
        """The direction in which a part of x is seen, so that it weighs what its push would."""
        if self.is_centred:
            x = x - x.mean(-1, keepdim=True)
        direction = direction if self.gain is None else direction * self.gain.to(direction)
        direction = direction / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return direction - direction.mean(-1, keepdim=True) if self.is_centred else direction

    def offset(self, x: Tensor) -> Tensor:
        """What the norm adds by itself."""
        return torch.zeros_like(x) if self.bias is None else self.bias.to(x).expand_as(x)


def _find_vector(module: nn.Module, name: str) -> Tensor | None:
    found = read_weight(module, name)
    return found if found is not None and found.ndim == 1 else None
