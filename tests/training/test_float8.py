"""Products of 8 bits against the same products of their rounded operands, and what may use them."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.errors import ConfigError
from glassformer.models import Config, build
from glassformer.training.chunked_loss import linear_cross_entropy_sum
from glassformer.training.float8 import (
    float8_feed_forward,
    float8_linear,
    replace_products,
    use_float8,
)
from glassformer.training.float8_matrices import round_gradient, round_matrix
from glassformer.training.loss import IGNORED

CONFIG = Config(family="decoder", vocab_size=19, dim=32, n_layers=2, n_heads=2, max_len=16)


def rounded(x: torch.Tensor, *, gradient: bool = False) -> torch.Tensor:
    found = round_gradient(x.flatten(0, -2))[0] if gradient else round_matrix(x.flatten(0, -2))
    return (found.rows.double() * found.scale.double()).view(x.shape)


@pytest.mark.parametrize("biased", [False, True])
def test_it_is_the_product_of_the_rounded_operands(biased):
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(s) for s in ((2, 16, 48), (64, 48), (64,)))
    x, weight = (t.to(torch.bfloat16).float().requires_grad_() for t in (x, weight))
    bias.requires_grad_()
    out = float8_linear(x, weight, bias if biased else None)
    gradient = torch.randn(out.shape).to(torch.bfloat16)
    inputs = (x, weight, bias) if biased else (x, weight)
    found = torch.autograd.grad(out, inputs, gradient)
    x8, w8, g8 = rounded(x.detach()), rounded(weight.detach()), rounded(gradient, gradient=True)
    expected = F.linear(x8, w8) + (bias.double() if biased else 0.0)
    torch.testing.assert_close(out.double(), expected, rtol=2**-7, atol=2**-5)
    torch.testing.assert_close(found[0].double(), g8 @ w8, rtol=2**-7, atol=2**-5)
    by_rows = g8.flatten(0, 1).t() @ x8.flatten(0, 1)
    torch.testing.assert_close(found[1].double(), by_rows, rtol=1e-5, atol=1e-5)
    if biased:
        torch.testing.assert_close(found[2], gradient.float().sum((0, 1)))


@pytest.mark.parametrize("biased", [False, True])
def test_a_feed_forward_network_is_near_its_definition(biased):
    torch.manual_seed(0)
    shapes = ((4, 16, 48), (96, 48), (96,), (48, 96), (48,))
    x, up, up_bias, down, down_bias = (torch.randn(s).requires_grad_() for s in shapes)
    given = (up_bias, down_bias) if biased else (None, None)
    found = float8_feed_forward(x, up, given[0], down, given[1])
    expected = F.linear(F.gelu(F.linear(x, up, given[0])), down, given[1])
    gradient = torch.randn(expected.shape)
    inputs = (x, up, up_bias, down, down_bias) if biased else (x, up, down)
    pairs = zip(
        (found.float(), *torch.autograd.grad(found, inputs, gradient.to(found.dtype))),
        (expected, *torch.autograd.grad(expected, inputs, gradient)),
        strict=True,
    )
    for a, b in pairs:  # 3 bits of each operand, 2 of a gradient
        assert (a - b).norm() < 0.15 * b.norm()


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


@pytest.mark.gpu
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n_chunks", [1, 3])
def test_the_output_layer_in_8_bits(monkeypatch, smoothing, n_chunks):
    from glassformer.training import chunked_loss

    torch.manual_seed(0)
    n, V = 960, 1003
    monkeypatch.setitem(chunked_loss._CHUNK, "cuda", n * V // n_chunks)
    hidden = torch.randn(2, n // 2, 64, device="cuda", dtype=torch.bfloat16).requires_grad_()
    weight = (torch.randn(V, 64, device="cuda") / 4).requires_grad_()
    targets = torch.randint(0, V, (2, n // 2), device="cuda")
    targets[0, :100] = IGNORED
    settings = {"smoothing": smoothing}
    found = linear_cross_entropy_sum(hidden, weight, targets, **settings, float8=True)
    expected = linear_cross_entropy_sum(hidden.float(), weight, targets, **settings)
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=0)
    assert found != expected
    pairs = zip(
        torch.autograd.grad(found, (hidden, weight)),
        torch.autograd.grad(expected, (hidden, weight)),
        strict=True,
    )
    for a, b in pairs:
        assert (a - b).float().norm() < 0.1 * b.float().norm()
    assert not torch.autograd.grad(
        linear_cross_entropy_sum(hidden, weight, targets, float8=True), hidden
    )[0][0, :100].any()


def test_elsewhere_the_output_layer_stays_as_it_is():
    hidden, weight = torch.randn(2, 16, 32), torch.randn(19, 32)
    targets = torch.randint(0, 19, (2, 16))
    plain = linear_cross_entropy_sum(hidden, weight, targets)
    assert torch.equal(linear_cross_entropy_sum(hidden, weight, targets, float8=True), plain)
