"""Products of 8 bits against the same products of their rounded operands, and what may use them."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.errors import ConfigError
from glassformer.models import Config, build
from glassformer.training.float8 import _quantize, float8_linear, replace_products, use_float8

CONFIG = Config(family="decoder", vocab_size=19, dim=32, n_layers=2, n_heads=2, max_len=16)


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    small, scale = _quantize(x, dtype)
    return small.double() * scale.double()


@pytest.mark.parametrize("biased", [False, True])
def test_it_is_the_product_of_the_rounded_operands(biased):
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(s) for s in ((2, 16, 48), (64, 48), (64,)))
    x, weight = (t.to(torch.bfloat16).float().requires_grad_() for t in (x, weight))
    bias.requires_grad_()
    out = float8_linear(x, weight, bias if biased else None)
    gradient = torch.randn(out.shape).to(torch.bfloat16)
    found = torch.autograd.grad(out, (x, weight), gradient)
    x8, w8 = (rounded(t.detach(), torch.float8_e4m3fn) for t in (x, weight))
    g8 = rounded(gradient, torch.float8_e5m2)
    expected = F.linear(x8, w8) + (bias.double() if biased else 0.0)
    torch.testing.assert_close(out.double(), expected, rtol=2**-7, atol=2**-5)
    torch.testing.assert_close(found[0].double(), g8 @ w8, rtol=2**-7, atol=2**-5)
    by_rows = g8.flatten(0, 1).t() @ x8.flatten(0, 1)
    torch.testing.assert_close(found[1].double(), by_rows, rtol=2**-7, atol=2**-5)


def test_zeros_stay_zeros():
    x = torch.zeros(16, 16, requires_grad=True)
    out = float8_linear(x, torch.zeros(16, 16))
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert not out.any() and not gradient.any()


def test_only_training_rounds():
    torch.manual_seed(0)
    model, tokens = build(CONFIG), torch.randint(0, 19, (2, 8))
    plain = model(tokens).detach()
    replace_products(model)
    assert not torch.equal(model.train()(tokens), plain)
    torch.testing.assert_close(model(tokens), plain, rtol=0, atol=0.1 * float(plain.abs().max()))
    assert torch.equal(model.eval()(tokens), plain)
    odd = model.train()(tokens[:, :7])  # 14 rows: no multiple of 16
    torch.testing.assert_close(odd, plain[:, :7])


@pytest.mark.plain
def test_a_cpu_is_refused():
    with pytest.raises(
        ConfigError,
        match=r"'fp8' needs a GPU of compute capability 8.9 or more, .*got a CPU. Use bf16",
    ):
        use_float8(build(CONFIG), torch.device("cpu"))


@pytest.mark.plain
# torch's own, when its compiler meets an autograd function
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_compiled_without_a_break():
    torch.manual_seed(0)
    x, weight = torch.randn(16, 32, requires_grad=True), torch.randn(48, 32, requires_grad=True)
    compiled = torch.compile(float8_linear, fullgraph=True, backend="aot_eager")
    for a, b in zip(
        torch.autograd.grad(compiled(x, weight).sum(), (x, weight)),
        torch.autograd.grad(float8_linear(x, weight).sum(), (x, weight)),
        strict=True,
    ):
        torch.testing.assert_close(a, b)
