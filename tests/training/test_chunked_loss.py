"""The loss in chunks against the definition in float64: by torch, by the kernel, and compiled."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.training import chunked_loss
from glassformer.training.chunked_loss import linear_cross_entropy_sum
from glassformer.training.loss import IGNORED
from glassformer.training.native_loss import Measure, find_measure
from triton_interpreter import DEVICE, check_in_interpreter, needs_kernels

B, L, C, V = 3, 7, 5, 11


def operands(dtype: torch.dtype, *, ignored: bool = True, device: str = "cpu") -> list[Tensor]:
    shapes = ((B, L, C), (V, C), (V,))
    tensors = [torch.randn(s, dtype=torch.float64).to(device, dtype) for s in shapes]
    targets = torch.randint(0, V, (B, L), device=device)
    if ignored:
        targets[0, 4:] = targets[2, 1:] = IGNORED
    return [*(x.requires_grad_() for x in tensors), targets]


def definition(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> Tensor:
    log_p = F.linear(hidden, weight, bias).log_softmax(-1)
    kept = targets != IGNORED
    chosen = log_p.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    losses = -(1 - smoothing) * chosen - smoothing / log_p.shape[-1] * log_p.sum(-1)
    return losses[kept].sum()


def gradients(loss: Tensor, *inputs: Tensor) -> list[Tensor]:
    return [loss.detach(), *torch.autograd.grad(0.37 * loss, inputs)]


@pytest.mark.parametrize("n_logits", [1 << 26, 5 * V])  # one chunk, several
@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.13])
@pytest.mark.parametrize("biased", [False, True])
def test_equals_the_definition(monkeypatch, n_logits, ignored, smoothing, biased):
    monkeypatch.setitem(chunked_loss._CHUNK, "cpu", n_logits)
    hidden, weight, bias, targets = operands(torch.float64, ignored=ignored)
    given = bias if biased else None
    inputs = (hidden, weight, bias) if biased else (hidden, weight)
    found = linear_cross_entropy_sum(hidden, weight, targets, bias=given, smoothing=smoothing)
    expected = definition(hidden, weight, given, targets, smoothing)
    for a, b in zip(gradients(found, *inputs), gradients(expected, *inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.fixture
def in_c(monkeypatch) -> Measure:
    """The kernel in C, which then also computes what is small, in several chunks."""
    measure = find_measure()
    if measure is None:
        pytest.skip("needs a C compiler")
    monkeypatch.setattr(chunked_loss, "_FEW", 0)
    monkeypatch.setattr(chunked_loss, "_ROWS_IN_C", 5)
    monkeypatch.setitem(chunked_loss._CHUNK, "C", 1)
    return measure


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.13])
@pytest.mark.parametrize("biased", [False, True])
def test_in_c_it_equals_the_definition(monkeypatch, in_c, ignored, smoothing, biased):
    calls = []

    def count(*given):
        calls.append(len(given[0]))
        return in_c(*given)

    monkeypatch.setattr(chunked_loss, "find_measure", lambda: count)
    inputs = operands(torch.float32, ignored=ignored)[: 3 if biased else 2]
    targets = operands(torch.float32, ignored=ignored)[3]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    bias, true_bias = (each[2] if biased else None for each in (inputs, exact))
    found = linear_cross_entropy_sum(*inputs[:2], targets, bias=bias, smoothing=smoothing)
    expected = definition(*exact[:2], true_bias, targets, smoothing)
    for a, b in zip(gradients(found, *inputs), gradients(expected, *exact), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=2e-6, atol=2e-6)
    assert max(calls) <= 5 and sum(calls) == int((targets != IGNORED).sum())


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("vocab_size", [1, 7, 16, 64, 1000, 5003])
@pytest.mark.parametrize("smoothing", [0.0, 0.13])
def test_rows_in_c_by_the_definition(in_c, vocab_size, smoothing):
    logits = 5 * torch.randn(37, vocab_size)
    targets = torch.randint(0, vocab_size, (37,))
    real = logits.double().requires_grad_()
    log_p = real.log_softmax(-1)
    expected = (smoothing - 1) * log_p.gather(1, targets[:, None])[:, 0]
    expected = expected - smoothing / vocab_size * log_p.sum(-1)
    (slopes,) = torch.autograd.grad(expected.sum(), real)
    gradient, kept = logits.clone(), logits.clone()
    losses = in_c(gradient, targets, smoothing, True)
    torch.testing.assert_close(losses.double(), expected.detach(), rtol=1e-6, atol=2e-6)
    torch.testing.assert_close(gradient.double(), slopes, rtol=0, atol=5e-7)
    assert torch.equal(in_c(kept, targets, smoothing, False), losses)
    assert torch.equal(kept, logits)
    torch.set_num_threads(1)
    again = logits.clone()
    assert torch.equal(in_c(again, targets, smoothing, True), losses)
    assert torch.equal(again, gradient)


def test_in_c_what_is_not_finite_shows_as_in_pytorch(in_c):
    logits = torch.randn(4, 40)
    logits[0, 33], logits[1, 3], logits[2, 38] = torch.nan, torch.inf, -torch.inf
    targets = torch.tensor([1, 2, 3, 4])
    theirs, ours = logits.clone().requires_grad_(), logits.clone()
    losses = F.cross_entropy(theirs, targets, reduction="none")
    (slopes,) = torch.autograd.grad(losses.sum(), theirs)
    found = in_c(ours, targets, 0.0, True)
    torch.testing.assert_close(found[2:], losses[2:].detach())
    torch.testing.assert_close(ours[2:], slopes[2:], rtol=0, atol=5e-7)
    assert found[:2].isnan().all() and losses[:2].isnan().all()
    assert ours[:2].isnan().all()


@pytest.mark.usefixtures("in_c")
def test_a_target_that_is_no_token_is_an_error():
    hidden, weight, bias, targets = operands(torch.float32, ignored=False)
    targets[1, 2] = V
    with pytest.raises((RuntimeError, IndexError)):
        linear_cross_entropy_sum(hidden, weight, targets, bias=bias)


def test_tied_weights_get_both_gradients():
    _, weight, _, targets = operands(torch.float64, ignored=False)
    found = linear_cross_entropy_sum(F.embedding(targets, weight), weight, targets)
    expected = definition(F.embedding(targets, weight), weight, None, targets, 0.0)
    torch.testing.assert_close(gradients(found, weight), gradients(expected, weight))


def test_without_gradients_there_is_only_the_loss():
    hidden, weight, bias, targets = operands(torch.float64)
    with torch.no_grad():
        loss = linear_cross_entropy_sum(hidden, weight, targets, bias=bias)
        rows = hidden.flatten(0, 1)
        parts = chunked_loss.chunked_loss(rows, weight, bias, targets.flatten(), 0.0, False, False)
    assert [x.numel() for x in parts] == [1, 0, 0, 0]
    torch.testing.assert_close(loss, definition(hidden, weight, bias, targets, 0.0).detach())


def test_all_targets_ignored():
    hidden, weight, bias, targets = operands(torch.float32)
    targets.fill_(IGNORED)
    loss = linear_cross_entropy_sum(hidden, weight, targets, bias=bias, smoothing=0.1)
    assert all(float(x.abs().max()) == 0.0 for x in gradients(loss, hidden, weight, bias))


def test_autocast_rounds_products_and_sums_in_float32():
    hidden, weight, bias, targets = operands(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = linear_cross_entropy_sum(hidden, weight, targets, bias=bias)
    assert found.dtype == torch.float32
    expected = definition(hidden, weight, bias, targets, 0.0)
    for a, b in zip(
        gradients(found, hidden, weight, bias),
        gradients(expected, hidden, weight, bias),
        strict=True,
    ):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=0.03, atol=0.03)


@pytest.mark.plain
def test_compiled_without_a_break():
    hidden, weight, bias, targets = operands(torch.float64)

    def compute(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return linear_cross_entropy_sum(hidden, weight, targets, bias=bias, smoothing=0.1)

    inputs = (hidden, weight, bias)
    found = torch.compile(compute, fullgraph=True, backend="aot_eager")(*inputs)
    expected = definition(hidden, weight, bias, targets, 0.1)
    for a, b in zip(gradients(found, *inputs), gradients(expected, *inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.plain
def test_the_interpreter_agrees_with_the_definition() -> None:
    check_in_interpreter(__file__, only="kernel")


@needs_kernels
@pytest.mark.parametrize("vocab_size", [11, 2048, 4096, 5003])
@pytest.mark.parametrize("smoothing", [0.0, 0.13])
def test_the_kernel_by_the_definition(monkeypatch, vocab_size, smoothing):
    # Small blocks, so that there are several turns of its loop, the last one in part.
    monkeypatch.setattr("glassformer.training.loss_kernel.BLOCK", 512)
    padded = -(-vocab_size // 64) * 64
    logits = 3 * torch.randn(6, padded, device=DEVICE)
    targets = torch.randint(0, vocab_size, (6,), device=DEVICE)
    targets[2] = IGNORED
    real = logits[:, :vocab_size].double().requires_grad_()
    eye = torch.eye(vocab_size, dtype=torch.float64, device=DEVICE)
    expected = definition(real, eye, None, targets, smoothing)
    (by_definition,) = torch.autograd.grad(expected, real)
    loss, gradient = chunked_loss._compute_by_kernel(
        logits.clone(), targets, vocab_size, smoothing, True
    )
    torch.testing.assert_close(loss.double(), expected.detach(), rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(gradient[:, :vocab_size].double(), by_definition, rtol=0, atol=1e-6)
    assert not gradient[:, vocab_size:].any() and not gradient[2].any()
    only, nothing = chunked_loss._compute_by_kernel(logits, targets, vocab_size, smoothing, False)
    assert torch.equal(only, loss) and nothing is None


@pytest.mark.gpu
@pytest.mark.parametrize("vocab_size", [11, 503])
def test_half_precision_on_a_gpu_pads_the_vocabulary(vocab_size):
    torch.manual_seed(0)
    hidden = torch.randn(64, 48, device="cuda", requires_grad=True)
    weight = torch.randn(vocab_size, 48, device="cuda", requires_grad=True)
    bias = torch.randn(vocab_size, device="cuda", requires_grad=True)
    targets = torch.randint(0, vocab_size, (64,), device="cuda")
    targets[5] = IGNORED
    inputs = (hidden, weight, bias)
    expected = gradients(definition(*(x.double() for x in inputs), targets, 0.1), *inputs)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        plain = F.cross_entropy(
            F.linear(hidden, weight, bias), targets, label_smoothing=0.1, reduction="sum"
        )
        found = linear_cross_entropy_sum(hidden, weight, targets, bias=bias, smoothing=0.1)
    for a, b, c in zip(gradients(found, *inputs), gradients(plain, *inputs), expected, strict=True):
        allowed = 3 * float((b.double() - c.double()).abs().max()) + 1e-2
        assert float((a.double() - c.double()).abs().max()) <= allowed
