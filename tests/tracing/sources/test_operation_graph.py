"""Attention written out by hand is found among the operations it runs, and proved on the spot."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from closeness import assert_close, assert_same
from glassformer.errors import TraceError
from glassformer.functional import attention_weights
from glassformer.tracing.site_steps import Step
from glassformer.tracing.sources.custom_attention import CustomAttention
from glassformer.tracing.sources.operand_recovery import explain_product
from glassformer.tracing.sources.operation_graph import Node, OperationGraph

B, H, L, S, D, E = 2, 3, 5, 7, 4, 6
Attention = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # → weights, out


def operands() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(B, H, L, D), torch.randn(B, H, S, D), torch.randn(B, H, S, E)


def hidden() -> Tensor:
    mask = torch.zeros(B, 1, 1, S, dtype=torch.bool)
    mask[1, ..., 4:] = True
    return mask


def by_matmul(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = q @ k.transpose(-1, -2) / math.sqrt(D) + hidden() * -1e4
    weights = nn.Softmax(dim=-1)(scores)
    return weights, weights @ v


def by_bmm(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    scores = torch.bmm(q * 0.3, k.transpose(1, 2)).view(B, H, L, S)
    scores = scores.masked_fill(hidden(), torch.finfo(q.dtype).min).view(B * H, L, S)
    weights = scores.softmax(-1)
    return weights.view(B, H, L, S), torch.bmm(weights, v).view(B, H, L, E)


def by_baddbmm(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    bias = torch.arange(S).expand(B * H, L, S) * 0.1
    raw = torch.baddbmm(bias, q.flatten(0, 1), k.flatten(0, 1).mT, beta=1.0, alpha=0.4)
    weights = torch.softmax(raw.view(B, H, L, S), dim=-1)
    return weights, weights @ v


def by_einsum(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Sequences and heads last, as XLNet has them."""
    q, k, v = (t.permute(2, 0, 1, 3) for t in (q, k, v))  # (L, B, H, D)
    scores = torch.einsum("ibnd,jbnd->ijbn", q, k) * 0.5
    weights = scores.softmax(1)
    out = torch.einsum("ijbn,jbnd->ibnd", weights, v)
    return weights.permute(2, 3, 0, 1), out.permute(1, 2, 0, 3)


def turned(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys times queries, and values times weights."""
    weights = (k @ q.transpose(-1, -2)).transpose(-1, -2).softmax(-1)
    return weights, (v.transpose(-1, -2) @ weights.transpose(-1, -2)).transpose(-1, -2)


def with_a_scale_per_head(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    q, k = (nn.functional.normalize(t, dim=-1) for t in (q, k))
    scale = torch.tensor([1.0, 5.0, 9.0]).view(H, 1, 1)
    weights = (q @ k.transpose(-1, -2) * scale).softmax(-1)
    return weights, weights @ v


def capped(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = (torch.tanh(q @ k.transpose(-1, -2) / 2.0) * 2.0).softmax(-1)
    return weights, weights @ v


def in_place(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = q @ k.transpose(-1, -2)
    scores /= 2.0
    scores.masked_fill_(hidden(), -math.inf)
    weights = scores.softmax(-1, dtype=torch.float64).to(v.dtype)
    return weights, weights @ v


def fused(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~hidden(), scale=0.7)
    scores = (q @ k.transpose(-1, -2) * 0.7).masked_fill(hidden(), -math.inf)
    return scores.exp() / scores.exp().sum(-1, keepdim=True), out


WAYS = [by_matmul, by_bmm, by_baddbmm, by_einsum, turned, with_a_scale_per_head, capped, in_place]


def followed(attend: Callable[[], Any]) -> tuple[Any, list[Step], OperationGraph]:
    steps: list[Step] = []

    def see(node: Node) -> None:
        with torch.no_grad():
            steps.append(explain_product(node, start=0, n_heads=H))

    with OperationGraph(see, lambda: "owner") as graph:
        out = attend()
    return out, steps, graph


@pytest.mark.parametrize("attend", [*WAYS, fused], ids=lambda way: way.__name__)
@pytest.mark.parametrize("with_gradients", [False, True], ids=["", "with gradients"])
def test_every_way_of_writing_it_is_found(attend: Attention, with_gradients: bool) -> None:
    q, k, v = (t.requires_grad_(with_gradients) for t in operands())
    plain = attend(q, k, v)
    (weights, out), (step,), graph = followed(lambda: attend(q, k, v))
    assert_same(out.detach(), plain[1].detach())
    assert not graph.pending
    assert step.k is not None
    derived = attention_weights(step.q, step.k, **step.options())
    assert_close(derived, weights.detach(), 1e-6)
    assert step.out is not None
    assert_same(step.out.contiguous(), out.detach().contiguous())


def test_masks_and_biases_are_told_apart() -> None:
    steps = {way.__name__: followed(lambda way=way: way(*operands()))[1][0] for way in WAYS}
    for name in ("by_matmul", "by_bmm", "in_place"):
        assert steps[name].bias is None
        assert_same(steps[name].rule.dense().expand(B, H, L, S), ~hidden().expand(B, H, L, S))
    assert steps["by_matmul"].scale == pytest.approx(1 / math.sqrt(D))
    assert steps["by_baddbmm"].bias is not None
    assert steps["by_baddbmm"].scale == pytest.approx(0.4)
    assert steps["capped"].bias is not None
    assert steps["by_einsum"].rule.is_whole


@pytest.mark.parametrize("with_gradients", [False, True], ids=["", "with gradients"])
def test_dropout_is_left_out_of_the_weights(with_gradients: bool) -> None:
    q, k, v = (t.requires_grad_(with_gradients) for t in operands())

    def attend() -> Tensor:
        weights = (q @ k.transpose(-1, -2)).softmax(-1)
        return nn.functional.dropout(weights, 0.5) @ v

    _, (step,), _ = followed(attend)
    assert step.k is not None
    assert step.out is None
    assert_close(attention_weights(step.q, step.k, **step.options()), (q @ k.mT).softmax(-1), 1e-6)


def test_other_weights_than_those_of_queries_and_keys_are_refused() -> None:
    q, k, v = operands()
    with pytest.raises(TraceError, match=r"rows of the softmax are cut, .* one sum to 0\.[0-9]+\."):
        followed(lambda: (q @ k.mT).softmax(-1)[..., :4] @ v[:, :, :4])
    with pytest.raises(TraceError, match=r"multiplies with its values; they differ by 0\.[0-9]+\."):
        followed(lambda: (0.1 + 0.3 * (q @ k.mT).softmax(-1)) @ v)


def joined(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Two kinds of keys, with queries of their own for each, as LUKE has them."""
    scores = [q @ k[:, :, :3].mT, q.flip(-1) @ k[:, :, 3:].mT]
    weights = torch.cat(scores, -1).softmax(-1)
    return weights, weights @ v


def test_scores_that_are_not_one_product_are_kept_as_they_are() -> None:
    (weights, _), (step,), graph = followed(lambda: joined(*operands()))
    assert step.k is not None
    assert step.bias is not None
    assert not graph.pending
    assert_close(attention_weights(step.q, step.k, **step.options()), weights, 1e-6)


def test_a_softmax_that_meets_no_values_is_pending() -> None:
    """Bands, as Longformer has them, are cut and moved; mixtures without queries are no matter."""
    q, k, v = operands()
    _, steps, graph = followed(lambda: (q @ k.mT).softmax(-1).roll(1, -1) @ v)
    assert not steps
    assert list(graph.pending.values()) == ["owner"]
    _, steps, graph = followed(lambda: v.softmax(-1) @ v.mT)
    assert not steps
    assert not graph.pending


class Output(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Hand(nn.Module):
    """Attention of its own; with `is_linear` one without a softmax."""

    def __init__(self, is_linear: bool = False) -> None:
        super().__init__()
        self.is_linear, self.output, self.num_heads = is_linear, Output(), H

    def forward(self, x: Tensor) -> Tensor:
        raw = x @ x.transpose(-1, -2)
        return (raw if self.is_linear else raw.softmax(-1)) @ x


@pytest.mark.parametrize("is_linear", [False, True])
def test_modules_without_any_are_reported(is_linear: bool) -> None:
    """What belongs to an attention that was found, and computes none, is none."""
    module, x = Hand(is_linear), torch.randn(B, H, L, D)
    found: list[nn.Module] = []
    missed: dict[nn.Module, str] = {}
    own = CustomAttention({module.output}, lambda m, _: found.append(m), missed.__setitem__)
    own.enter(module)
    module(x)
    own.enter(module.output)
    out = module.output(x)
    own.leave(module.output, out)
    own.leave(module, out)
    assert own.graph is None
    assert found == ([] if is_linear else [module])
    assert missed == ({module.output: "Hand computes no softmax"} if is_linear else {})
