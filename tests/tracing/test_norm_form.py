"""Norms as formulas: as the modules compute them, and linear once frozen."""

import pytest
import torch
from torch import nn

from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.layers.norm import RMSNorm
from glassformer.tracing.norm_form import NormForm


class ShiftedRMSNorm(RMSNorm):
    """Gemma's: the gain is one more than the weight."""

    def forward(self, x):
        weight = self.weight.data
        self.weight.data = weight + 1
        try:
            return super().forward(x)
        finally:
            self.weight.data = weight


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "module",
    [
        nn.LayerNorm(9, eps=1e-3),
        nn.LayerNorm(9, bias=False),
        nn.LayerNorm(9, elementwise_affine=False),
        RMSNorm(9, eps=1e-2),
        ShiftedRMSNorm(9),
    ],
    ids=["layer", "no bias", "bare", "rms", "shifted"],
)
def test_a_norm_is_recognised_and_linear_once_frozen(module, dtype) -> None:
    torch.manual_seed(0)
    module = module.to(dtype)
    for part in module.parameters():
        part.data.normal_()
    a, b = torch.randn(2, 3, 9).to(dtype).unbind(0)
    x = a + b
    form = NormForm.of(module, x, module(x))
    if isinstance(module, ShiftedRMSNorm):  # rounds its gain as models do in different ways
        assert_close(form(x), module(x), 2 * torch.finfo(dtype).eps)
    else:
        assert torch.equal(form(x), module(x))
    exact = x.double()
    pushed = form.push(a.double(), exact) + form.push(exact - a.double(), exact)
    assert_close(pushed + form.offset(exact), form(exact), 1e-12)
    direction = torch.randn(9).double()
    for row in range(3):
        seen = form.pull(direction, exact[row])
        assert_close(seen @ a[row].double(), direction @ form.push(a.double(), exact)[row], 1e-10)


@pytest.mark.parametrize("module", [nn.LayerNorm(8, bias=False), RMSNorm(8)])
def test_a_mean_of_zero_does_not_hide_the_difference(module) -> None:
    x = torch.linspace(-1, 1, 8)[None]
    form = NormForm.of(module, x, module(x))
    assert form.is_centred == isinstance(module, nn.LayerNorm)


def test_another_layer_is_no_norm() -> None:
    x = torch.randn(2, 9)
    with pytest.raises(TraceError, match="Tanh is neither a LayerNorm nor an RMSNorm"):
        NormForm.of(nn.Tanh(), x, x.tanh())
