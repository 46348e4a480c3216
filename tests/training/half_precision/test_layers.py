"""Layers that learn by kernels of half precision compute what their classes say."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from glassformer.layers import (
    Block,
    CrossAttention,
    FeedForward,
    MixtureOfExperts,
    Router,
    SelfAttention,
)
from glassformer.models.learning_forward import has_own_forward
from glassformer.training.half_precision import bias_sums, layers, residual_norm
from glassformer.training.half_precision.layers import replace_layers
from glassformer.training.model_building import apply_compute, recompute_blocks
from glassformer.training.recipe import ComputeSettings

ALL = {"biased_gelu", "project_heads", "residual_norm"}


def build_block(dim: int = 24, *, place: str = "pre", **options: Any) -> Block:
    parts: dict[str, Any] = {
        "attention": SelfAttention(dim, 3, biases="all"),
        "feed_forward": FeedForward(dim, 2 * dim, activation="gelu"),
        "make_norm": lambda: nn.LayerNorm(dim),
    }
    return Block(norm_place=place, **(parts | options))


def note(calls: list[str], name: str, work: Any, *inputs: Any, **options: Any) -> Any:
    calls.append(name)
    return work(*inputs, **options)


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """As if modules were on a GPU in half precision; the names of what they call."""
    calls: list[str] = []
    for place in (bias_sums, residual_norm):
        monkeypatch.setattr(place, "learns_plainly", lambda module, x: torch.is_grad_enabled())
    for name in ALL:
        monkeypatch.setattr(layers, name, partial(note, calls, name, getattr(layers, name)))
    return calls


def gradients(work: Any, model: nn.Module, *inputs: Any, **options: Any) -> list[torch.Tensor]:
    loss = work(*inputs, **options).float().square().sum()
    return list(torch.autograd.grad(loss, list(model.parameters())))


def assert_close(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # PyTorch's own, in compile
def test_blocks_learn_the_same_eager_and_compiled(calls) -> None:
    torch.manual_seed(0)
    blocks, x = nn.Sequential(build_block(), build_block()), torch.randn(2, 7, 24)
    exact = gradients(blocks, blocks, x)
    replace_layers(blocks)
    assert_close(gradients(blocks, blocks, x), exact)
    assert set(calls) == ALL
    compiled = torch.compile(blocks, backend="aot_eager", fullgraph=True)
    assert_close(gradients(compiled, blocks, x), exact)


@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_block_with_cross_attention(place: str, calls) -> None:
    torch.manual_seed(0)
    cross = CrossAttention(24, 3, biases="all")
    block, x, context = build_block(place=place, cross=cross), *torch.randn(2, 2, 5, 24).unbind()
    exact = gradients(block, block, x, context=context)
    replace_layers(block)
    assert_close(gradients(block, block, x, context=context), exact)
    assert calls.count("residual_norm") == (3 if place == "pre" else 0)


def test_what_has_no_kernel_computes_as_its_class(calls) -> None:
    torch.manual_seed(0)
    attention = SelfAttention(24, 3, biases="all", head_norm_eps=1e-6)
    network = FeedForward(24, 30, activation="gelu_tanh")
    block, x = build_block(attention=attention, feed_forward=network), torch.randn(2, 5, 24)
    exact = gradients(block, block, x)
    replace_layers(block)
    assert_close(gradients(block, block, x), exact)
    assert calls == ["residual_norm"] * 2


def test_a_router_reads_an_exact_norm(calls) -> None:
    experts = MixtureOfExperts(24, 16, router=Router(24, n_experts=2, n_active=1))
    block = build_block(feed_forward=experts)
    replace_layers(block)
    block(torch.randn(2, 5, 24))
    assert calls == ["residual_norm", "project_heads"]


def test_evaluated_it_computes_as_its_class(calls) -> None:
    block, x = build_block(), torch.randn(2, 5, 24)
    expected = block.eval()(x)
    replace_layers(block)
    assert torch.equal(block(x), expected)
    with torch.no_grad():
        assert torch.equal(block.train()(x), expected)
    assert not calls
    assert not any(has_own_forward(part) for part in block.modules())


def test_a_forward_of_somebody_else_stays(calls) -> None:
    block = build_block()
    block.attention.forward = lambda x, **_: x
    replace_layers(block)
    block(torch.randn(2, 5, 24))
    assert "project_heads" not in calls


def test_with_recomputed_activations(calls) -> None:
    torch.manual_seed(0)
    block, x = build_block(), torch.randn(2, 5, 24)
    exact = gradients(block, block, x)
    replace_layers(block)
    recompute_blocks(block)
    assert_close(gradients(block, block, x), exact)
    assert calls.count("residual_norm") == 4  # twice, and again behind


@pytest.mark.parametrize(
    ("device", "precision", "replaced"),
    [
        ("cuda", "bf16", True),
        ("cuda", "fp16", True),
        ("cuda", "fp32", False),
        ("cpu", "bf16", False),
    ],
)
def test_the_trainer_takes_them_in_half_precision_on_a_gpu(device, precision, replaced) -> None:
    block = build_block()
    apply_compute(ComputeSettings(precision=precision), block, torch.device(device))
    assert ("forward" in vars(block)) is replaced


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_a_gpu_takes_the_kernels(half: bool, compiled: bool, monkeypatch) -> None:
    torch.manual_seed(0)
    blocks = nn.Sequential(build_block(192), build_block(192)).cuda()
    x = torch.randn(2, 130, 192, device="cuda")
    exact = gradients(blocks, blocks, x)
    replace_layers(blocks)
    launched: list[str] = []
    launch, choose = bias_sums._launch, residual_norm._choose_tile
    monkeypatch.setattr(
        bias_sums,
        "_launch",
        lambda name, *rest, **more: note(launched, name, launch, name, *rest, **more),
    )
    monkeypatch.setattr(
        residual_norm,
        "_choose_tile",
        lambda width, n_bytes: note(launched, f"norm {n_bytes}", choose, width, n_bytes),
    )
    work = torch.compile(blocks, fullgraph=True) if compiled else blocks
    with torch.autocast("cuda", torch.bfloat16):
        found = gradients(work, blocks, x.bfloat16() if half else x)
    norm = "norm 6" if half else "norm 10"  # bytes of a number in the stream, its gradient and y's
    gelu = {"biased_gelu_kernel", "biased_gelu_backward_kernel"}
    assert gelu | {"join_kernel", norm} <= set(launched)
    for a, b in zip(found, exact, strict=True):
        assert float((a - b).norm() / b.norm()) < 2e-2
