"""Products by oneDNN against float64, on any processor, and which products are left to MKL."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from closeness import assert_close, assert_same
from glassformer.training import chunked_loss, cpu_products
from glassformer.training.chunked_loss import linear_cross_entropy_sum
from glassformer.training.cpu_products import onednn_linear, prefers_onednn, replace_products
from glassformer.training.loss import IGNORED

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="needs a PyTorch with oneDNN"
)
C, OUT = 23, 37


@pytest.fixture
def preferred(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """oneDNN computes whatever it may, however small; returns the shapes that it was given."""
    seen: list[tuple[int, ...]] = []
    usual = cpu_products.multiply

    def multiply(x: Tensor, *rest: Tensor | None) -> Tensor:
        seen.append(tuple(x.shape))
        return usual(x, *rest)

    monkeypatch.setattr(cpu_products, "prefers_onednn", lambda: True)
    monkeypatch.setattr(cpu_products, "_FEW", 0)
    monkeypatch.setattr(cpu_products, "_FEW_ROWS", 0)
    monkeypatch.setattr(cpu_products, "multiply", multiply)
    monkeypatch.setattr(chunked_loss, "multiply", multiply)
    return seen


def assert_as_exact(got: Tensor, exact: Tensor, plain: Tensor) -> None:
    """At most twice as far from float64 as PyTorch's own float32, and two roundings."""
    error = (plain.double() - exact).abs().max().item()
    rounding = torch.finfo(torch.float32).eps * exact.abs().max().item()
    assert_close(got.double(), exact, 2 * error + 2 * rounding)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [(1,), (19,), (3, 7), (2, 3, 5)])
def test_products_and_gradients(shape: tuple[int, ...], biased: bool) -> None:
    operands = [torch.randn(*shape, C), torch.randn(OUT, C), torch.randn(OUT)]
    operands = operands if biased else operands[:2]
    above = torch.randn(*shape, OUT)
    found = {}
    for name, dtype in (("ours", torch.float32), ("plain", torch.float32), ("exact", torch.double)):
        inputs = [x.to(dtype).requires_grad_() for x in operands]
        out = (onednn_linear if name == "ours" else F.linear)(*inputs)
        found[name] = [out, *torch.autograd.grad(out, inputs, above.to(dtype))]
    for ours, plain, exact in zip(*found.values(), strict=True):
        assert ours.is_contiguous() and not ours.is_mkldnn
        assert_as_exact(ours.detach(), exact.detach(), plain.detach())


def test_operands_may_lie_anywhere() -> None:
    x = torch.randn(C, 19).t().requires_grad_()
    weight, above = torch.randn(C, OUT).t(), torch.randn(OUT, 19).t()
    out = onednn_linear(x, weight)
    assert_close(out, x @ weight.t(), 1e-5)
    assert_close(torch.autograd.grad(out, x, above)[0], above @ weight, 1e-5)


def test_an_input_that_learns_nothing_has_no_gradient() -> None:
    weight = torch.randn(OUT, C, requires_grad=True)
    onednn_linear(torch.randn(5, C), weight).sum().backward()
    assert weight.grad is not None and weight.grad.shape == weight.shape


def test_a_frozen_weight_costs_no_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_products, "multiply_rows", pytest.fail)
    x, bias = torch.randn(5, C, requires_grad=True), torch.randn(OUT, requires_grad=True)
    weight, above = torch.randn(OUT, C), torch.randn(5, OUT)
    found = torch.autograd.grad(onednn_linear(x, weight, bias), (x, bias), above)
    assert_close(found[0], above @ weight, 1e-5)
    assert_close(found[1], above.sum(0), 1e-5)


def test_there_is_no_second_derivative() -> None:
    x = torch.randn(5, C, requires_grad=True)
    (slope,) = torch.autograd.grad(
        onednn_linear(x, torch.randn(OUT, C)).square().sum(), x, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def make_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(C, OUT), nn.GELU(), nn.Linear(OUT, C)).train()


def test_layers_multiply_so_only_while_they_learn(preferred: list) -> None:
    layers, x = make_layers(), torch.randn(5, C)
    replace_products(layers)
    layers(x)
    assert preferred == [(5, C), (5, OUT)]
    with torch.no_grad():
        layers(x)
    layers.eval()(x)
    layers.train()
    with torch.autocast("cpu", torch.bfloat16):
        layers(x)
    torch.func.grad(lambda x: layers(x).sum())(x)
    layers.double()(x.double())
    assert len(preferred) == 2


@pytest.mark.plain
def test_compiled_layers_are_left_to_the_compiler(preferred: list) -> None:
    layers, x = make_layers(), torch.randn(5, C)
    expected = layers(x)
    replace_products(layers)
    assert_close(torch.compile(layers, backend="eager", fullgraph=True)(x), expected, 1e-5)
    assert not preferred


@pytest.mark.parametrize(
    ("shape", "n_out", "expected"),
    [((2, 32, 512), 512, 1), ((2, 31, 512), 1024, 0), ((2, 32, 512), 511, 0)],
)
def test_small_products_are_left_to_mkl(
    shape: tuple[int, ...], n_out: int, expected: int, preferred: list, monkeypatch
) -> None:
    monkeypatch.setattr(cpu_products, "_FEW", 1 << 24)
    monkeypatch.setattr(cpu_products, "_FEW_ROWS", 64)
    layer = nn.Linear(shape[-1], n_out)
    replace_products(layer)
    layer(torch.randn(shape))
    assert len(preferred) == expected


def test_a_copy_has_layers_of_its_own(preferred: list) -> None:
    layers, x = make_layers(), torch.randn(5, C)
    replace_products(layers)
    other = copy.deepcopy(layers)
    with torch.no_grad():
        layers[0].weight.zero_()
    assert not torch.equal(layers(x), other(x))
    assert len(preferred) == 4


def test_what_somebody_replaced_is_kept(preferred: list) -> None:
    layers = make_layers()
    layers[0].forward = lambda x: x  # type: ignore[method-assign]
    replace_products(layers)
    assert layers[0](torch.ones(2, C)).shape == (2, C)
    assert not preferred


def test_where_mkl_is_fast_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_products, "prefers_onednn", lambda: False)
    layers = make_layers()
    replace_products(layers)
    assert not any("forward" in vars(layer) for layer in layers)


@pytest.mark.parametrize(
    ("capability", "chip", "expected"),
    [
        ("AVX512", "vendor_id\t: AuthenticAMD", True),
        ("AVX512", "vendor_id\t: GenuineIntel", False),
        ("AVX2", "vendor_id\t: AuthenticAMD", False),
    ],
)
def test_the_processor_decides(
    capability: str, chip: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(cpu_products.Path, "read_text", lambda *_, **__: chip)
    assert prefers_onednn.__wrapped__() is expected


@pytest.mark.parametrize("n_logits", [1 << 26, 5 * 11])  # one chunk, several
@pytest.mark.parametrize("biased", [False, True])
def test_the_loss_of_an_output_layer(
    n_logits: int, biased: bool, preferred: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(chunked_loss._CHUNK, "cpu", n_logits)
    hidden, weight, bias = torch.randn(3, 7, C), torch.randn(11, C), torch.randn(11)
    targets = torch.randint(0, 11, (3, 7))
    targets[0, 4:] = IGNORED
    found = {}
    for name in ("onednn", "torch"):
        inputs = [x.clone().requires_grad_() for x in (hidden, weight, bias)[: 3 if biased else 2]]
        given = inputs[2] if biased else None
        loss = linear_cross_entropy_sum(*inputs[:2], targets, bias=given, smoothing=0.1)
        found[name] = [loss.detach(), *torch.autograd.grad(loss, inputs)]
        monkeypatch.setattr(cpu_products, "prefers_onednn", lambda: False)
    assert len(preferred) == 2 * (1 if n_logits > 100 else 4)  # forward and backward
    for ours, theirs in zip(*found.values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_same_bits_each_time() -> None:
    x, weight = torch.randn(300, 64, requires_grad=True), torch.randn(96, 64, requires_grad=True)
    above = torch.randn(300, 96)
    first, second = (
        torch.autograd.grad(onednn_linear(x, weight), (x, weight), above) for _ in range(2)
    )
    for a, b in zip(first, second, strict=True):
        assert_same(a, b)
