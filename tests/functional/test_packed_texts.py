"""The kernels for short packed texts against the definition in float64, and by PyTorch's rules."""

import pytest
import torch
from torch import Tensor

from glassformer.functional import reference
from glassformer.functional.masks import Causal, Sequences
from glassformer.functional.packed_texts import attend_packed
from triton_interpreter import DEVICE, INTERPRETED, check_in_interpreter, needs_kernels

# one token, a part of a tile, a whole one, and texts of two and more tiles
OWN = [3, 70, 1, 64] if INTERPRETED else [3, 70, 1, 64, 129, 33, 256]
ASKING = [66, 2, 5, 1] if INTERPRETED else [66, 2, 5, 1, 64, 200, 7]
# The interpreter multiplies matrices of bfloat16 wrongly (Triton 3.6 to 3.9).
DTYPES = {torch.float32: 2e-5} if INTERPRETED else {torch.float32: 2e-5, torch.bfloat16: 2e-2}


@pytest.mark.plain
def test_the_interpreter_agrees_with_the_definition() -> None:
    check_in_interpreter(__file__)


def starts_of(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int().to(DEVICE)


def operands(asking: list[int], own: list[int], D: int, heads: int) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = [(sum(asking), 4, D), (sum(own), heads, D), (sum(own), heads, D)]
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def attend(
    tensors: list[Tensor], asking: list[int], own: list[int], dropout: float = 0.0, **how: bool
) -> Tensor:
    rows = starts_of(asking), starts_of(own)
    return attend_packed(*tensors, *rows, max(own), 0.3, dropout, **how)  # type: ignore[misc]


def error(a: Tensor, b: Tensor) -> float:
    return float((a.detach().cpu().double() - b.detach()).norm() / b.detach().norm())


@needs_kernels
@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("kind", ["own", "causal", "cross", "grouped", "odd width", "strided"])
def test_outputs_and_gradients(kind: str, dtype: torch.dtype) -> None:
    asking = ASKING if kind == "cross" else OWN
    D, heads = 11 if kind == "odd width" else 32, 2 if kind == "grouped" else 4
    exact = [x.requires_grad_() for x in operands(asking, OWN, D, heads)]
    if kind == "strided":  # as parts of one projection
        whole = torch.cat([x.detach() for x in exact], 1).to(DEVICE, dtype)
        mine = [x.requires_grad_() for x in whole.split(4, 1)]
    else:
        mine = [x.detach().to(DEVICE, dtype).requires_grad_() for x in exact]
    mask = Sequences.of(OWN, asking if kind == "cross" else None)
    mask = Causal() & mask if kind == "causal" else mask
    q, k, v = (x.transpose(0, 1)[None] for x in exact)
    expected = reference.attention(q, k, v, mask=mask, scale=0.3)[0].transpose(0, 1)
    found = attend(mine, asking, OWN, is_causal=kind == "causal")
    towards = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, exact, towards)
    gradients = torch.autograd.grad(found, mine, towards.to(found))
    assert error(found, expected) < DTYPES[dtype]
    for own, other in zip(gradients, wanted, strict=True):
        assert error(own, other) < DTYPES[dtype]


@needs_kernels
def test_dropout_is_that_of_its_seed_and_has_its_gradient() -> None:
    """Values of one token each read the weights; a step along the gradient must pay."""
    own = [3, 70]
    tensors = [x.to(DEVICE, torch.float32) for x in operands(own, own, 32, 4)]
    share = 0.25

    def draw(values: list[Tensor]) -> Tensor:
        torch.manual_seed(7)
        return attend(values, own, own, share, is_causal=False)

    first = draw(tensors)
    assert torch.equal(first, draw(tensors))
    torch.manual_seed(8)
    assert not torch.equal(first, attend(tensors, own, own, share, is_causal=False))

    # With equal keys and values of ones, an output is the share of weights that are kept, times
    # 1 / (1 − share).
    flat = [tensors[0], torch.zeros_like(tensors[1]), torch.ones_like(tensors[2])]
    kept = draw(flat)[3:, :, 0] * (1 - share)
    assert abs(float(kept.mean()) - (1 - share)) < 0.02
    assert float(kept.std()) > 0.02

    mine = [x.clone().requires_grad_() for x in tensors]
    towards = torch.randn_like(first)
    gradients = torch.autograd.grad(draw(mine), mine, towards)
    for i, gradient in enumerate(gradients):
        moved, values = 1e-2 * torch.randn_like(gradient), []
        for sign in (1, -1):
            shifted = [x + sign * moved if i == j else x for j, x in enumerate(tensors)]
            values.append((draw(shifted) * towards).sum())
        expected = 2 * (gradient * moved).sum()
        torch.testing.assert_close(values[0] - values[1], expected, rtol=2e-2, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore")
def test_compiled_and_captured() -> None:
    mine = [x.to("cuda", torch.bfloat16).requires_grad_() for x in operands(OWN, OWN, 64, 4)]
    work = torch.compile(lambda *x: attend(list(x), OWN, OWN, is_causal=True), fullgraph=False)
    assert error(work(*mine), attend(mine, OWN, OWN, is_causal=True).double().cpu()) < 1e-2
