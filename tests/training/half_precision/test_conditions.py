"""When kernels for training in half precision stand in, and when PyTorch's operations stay."""

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from glassformer.training.half_precision import conditions
from glassformer.training.half_precision.conditions import (
    is_differentiated_again,
    learns_plainly,
    takes_kernels,
)


class Marked(torch.Tensor):
    """A tensor with rules of its own, as DTensor has."""


class OnGpu:
    is_cuda, dtype = True, torch.bfloat16


@pytest.fixture
def on_gpu(monkeypatch) -> type[OnGpu]:
    monkeypatch.setattr(conditions, "_is_followed_by_autograd_alone", lambda x: True)
    return OnGpu


def test_nothing_on_a_cpu() -> None:
    assert not takes_kernels(torch.randn(3))
    assert not learns_plainly(nn.Linear(3, 5), torch.randn(2, 3).bfloat16())


@pytest.mark.plain
def test_modules_that_learn_in_half_precision(on_gpu, monkeypatch) -> None:
    layer = nn.Linear(3, 5)
    assert learns_plainly(layer, on_gpu())
    with torch.no_grad():
        assert not learns_plainly(layer, on_gpu())
    for register in (
        layer.register_forward_hook,
        layer.register_forward_pre_hook,
        layer.register_full_backward_hook,
        layer.register_full_backward_pre_hook,
        register_module_forward_hook,
        register_module_forward_pre_hook,
    ):
        handle = register(lambda *_: None)
        assert not learns_plainly(layer, on_gpu())
        handle.remove()
        assert learns_plainly(layer, on_gpu())
    layer.forward = layer.forward
    assert not learns_plainly(layer, on_gpu())
    monkeypatch.setattr(on_gpu, "dtype", torch.float32)
    assert not learns_plainly(nn.Linear(3, 5), on_gpu())


def test_what_else_follows_a_computation() -> None:
    is_alone, x = conditions._is_followed_by_autograd_alone, torch.randn(3)
    assert is_alone(x)
    assert is_alone(nn.Parameter(x))
    assert not is_alone(x.as_subclass(Marked))
    seen = []
    torch.func.vmap(lambda row: (seen.append(is_alone(row)), row)[1])(x)
    torch.func.grad(lambda row: (seen.append(is_alone(row)), row.sum())[1])(x)
    with forward_ad.dual_level():
        seen.append(is_alone(x))
    assert seen == [False, False, False]


@pytest.mark.plain
@pytest.mark.parametrize("is_watched", [False, True])
def test_the_question_is_compiled_away(is_watched: bool) -> None:
    """Whoever hooks a module does so before it is compiled: PyTorch asks that of all."""
    torch._dynamo.reset()  # nor does it look at hooks before it reuses a graph
    layer = nn.Linear(2, 2)
    if is_watched:
        layer.register_forward_hook(lambda *_: None)

    def work(x: torch.Tensor) -> torch.Tensor:
        is_alone = conditions._is_followed_by_autograd_alone(x)
        return x + (is_alone and not conditions._has_hooks(layer))

    compiled = torch.compile(work, backend="eager", fullgraph=True)
    assert bool((compiled(torch.zeros(2)) == (not is_watched)).all())


def test_a_backward_pass_knows_whether_it_is_differentiated_again() -> None:
    answers = []

    class Ask(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            answers.append(is_differentiated_again())
            return gradient

    x = torch.randn(3, requires_grad=True)
    torch.autograd.grad(Ask.apply(x).sum(), x)
    torch.autograd.grad(Ask.apply(x).sum(), x, create_graph=True)
    assert answers == [False, True]
