"""Mixtures of experts against their definition: every expert for every token, most weights 0."""

import pytest
import torch
from torch import nn

from closeness import assert_close
from glassformer.errors import ConfigError
from glassformer.layers import ExpertLinear, FeedForward, MixtureOfExperts, Router
from glassformer.layers.feed_forward import ACTIVATIONS

B, L, C, F, N, K = 2, 5, 6, 7, 4, 2


def make(*, gated: bool = True, bias: bool = True, shared: bool = False, **options):
    sizes = {"n_experts": N, "n_active": K, **options}
    layer = MixtureOfExperts(
        C,
        F,
        router=Router(C, **sizes),
        shared=FeedForward(C, 3, activation="silu", gated=gated, bias=bias) if shared else None,
        activation="silu",
        gated=gated,
        bias=bias,
    ).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.7)
    return layer


def define(layer: MixtureOfExperts, x: torch.Tensor) -> torch.Tensor:
    """Σ over all experts of g(x)·E(x), with g = 0 for those that are not chosen."""
    logits = x @ layer.router.weight.T
    gates = logits.softmax(-1) if layer.router.gate == "softmax" else logits.sigmoid()
    order = gates if layer.router.selection_bias is None else gates + layer.router.selection_bias
    lowest = order.sort(-1, descending=True).values[..., layer.router.n_active - 1, None]
    gates = gates * (order >= lowest)
    if layer.router.normalization == "chosen":
        gates = gates / gates.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for i in range(layer.router.n_experts):
        bias = (
            [0, 0]
            if layer.expert_up.bias is None
            else [layer.expert_up.bias[i], layer.expert_down.bias[i]]
        )
        hidden = x @ layer.expert_up.weight[i].T + bias[0]
        act = ACTIVATIONS[layer.activation]
        hidden = act(hidden[..., :F]) * hidden[..., F:] if layer.gated else act(hidden)
        out = out + layer.router.scale * gates[..., i, None] * (
            hidden @ layer.expert_down.weight[i].T + bias[1]
        )
    return out + layer.shared(x) if layer.has_shared else out


@pytest.mark.parametrize("gate", ["softmax", "sigmoid"])
@pytest.mark.parametrize("normalization", ["all", "chosen"])
@pytest.mark.parametrize("gated", [False, True])
def test_it_is_its_definition(gate: str, normalization: str, gated: bool) -> None:
    layer = make(gate=gate, normalization=normalization, gated=gated, bias=gated, shared=not gated)
    layer.router.scale = 1.7
    x = torch.randn(B, L, C, dtype=torch.float64)
    assert_close(layer(x), define(layer, x), 1e-12)


def test_gradients_are_those_of_the_definition() -> None:
    layer = make(shared=True)
    x = torch.randn(B, L, C, dtype=torch.float64, requires_grad=True)
    inputs = [x, *layer.parameters()]
    probe = torch.randn(B, L, C, dtype=torch.float64)
    got = torch.autograd.grad((layer(x) * probe).sum(), inputs)
    expected = torch.autograd.grad((define(layer, x) * probe).sum(), inputs)
    for ours, theirs in zip(got, expected, strict=True):
        assert_close(ours, theirs, 1e-11)


def test_softmax_after_the_top_k_is_a_softmax_of_the_chosen() -> None:
    layer = make(normalization="chosen")
    x = torch.randn(B, L, C, dtype=torch.float64)
    routing = layer.router(x)
    logits = (x @ layer.router.weight.T).topk(K, dim=-1).values
    assert_close(routing.weights, logits.softmax(-1), 1e-12)


def test_copied_matrices_give_what_sorted_rows_give(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = make()
    x = torch.randn(B, L, C, dtype=torch.float64)
    expected = layer(x)
    monkeypatch.setattr(layer, "_is_gathered", lambda *_: True)
    assert_close(layer(x), expected, 1e-12)


def test_an_expert_without_tokens_is_not_run_and_has_no_gradient() -> None:
    layer = make(n_active=1)
    layer.router.weight.data[1:] = 0
    layer.router.weight.data[0] = 1.0
    x = torch.rand(B, L, C, dtype=torch.float64)
    layer(x).sum().backward()
    assert layer.expert_up.weight.grad[0].abs().max() > 0
    assert torch.equal(
        layer.expert_up.weight.grad[1:], torch.zeros_like(layer.expert_up.weight.grad[1:])
    )


def test_only_experts_of_the_best_groups_are_chosen() -> None:
    router = Router(C, n_experts=6, n_active=2, n_groups=3, n_active_groups=1).double()
    nn.init.normal_(router.weight)
    x = torch.randn(50, C, dtype=torch.float64)
    routing = router(x)
    assert torch.equal(routing.experts[:, 0] // 2, routing.experts[:, 1] // 2)
    assert torch.equal(routing.experts[:, 0], routing.affinities.argmax(-1))  # the best is in it


def test_groups_under_a_sigmoid_count_their_best_two() -> None:
    router = Router(1, n_experts=6, n_active=2, n_groups=2, n_active_groups=1, gate="sigmoid")
    router.weight.data[:, 0] = torch.tensor([3.0, -3.0, -3.0, 1.0, 1.0, -3.0])
    assert sorted(router(torch.ones(1, 1)).experts[0].tolist()) == [3, 4]


def test_a_selection_bias_changes_the_choice_and_not_the_weights() -> None:
    router = Router(C, n_experts=N, n_active=K, selection_bias=True, normalization="all")
    x = torch.randn(9, C)
    before = router(x)
    router.selection_bias[2] = 10.0
    after = router(x)
    assert (after.experts == 2).any(-1).all()
    assert_close(after.affinities, before.affinities, 0)
    assert_close(after.weights, after.affinities.gather(-1, after.experts), 0)


def test_routing_is_in_float32_also_under_autocast() -> None:
    router = Router(C, n_experts=N, n_active=K)
    x = torch.randn(9, C)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = router(x)
    assert_close(got.affinities, router(x).affinities, 0)


@pytest.mark.plain
def test_a_compiled_step_is_the_same() -> None:
    layer = make().float().eval()
    x = torch.randn(1, 1, C)
    with torch.no_grad():
        got = torch.compile(layer, fullgraph=True)(x)
        assert_close(got, layer(x), 1e-5)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_active": 5}, r"n_active must be 1 … n_experts; got n_active=5, n_experts=4"),
        ({"n_groups": 3}, r"multiple of n_groups; got n_experts=4, n_groups=3"),
        ({"n_groups": 2, "n_active_groups": 3}, r"1 … n_groups; got n_active_groups=3, n_groups=2"),
        ({"n_groups": 4, "n_active_groups": 1}, r"exceed the 1 experts .* got n_active=2"),
    ],
)
def test_choices_that_no_router_can_make(changes: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Router(C, **({"n_experts": N, "n_active": K} | changes))


@pytest.mark.plain
def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"one of relu, .*; got 'mish'"):
        MixtureOfExperts(C, F, router=Router(C, n_experts=N, n_active=K), activation="mish")


def test_rows_find_their_matrices() -> None:
    layer = ExpertLinear(3, 2, 2, bias=False)
    layer.weight.data = torch.stack([torch.eye(2) * i for i in range(3)])
    rows = torch.ones(4, 2)
    expected = torch.tensor([[0.0, 0.0], [0.0, 0.0], [2.0, 2.0], [2.0, 2.0]])
    assert_close(layer(rows, [2, 0, 2]), expected, 0)
    assert_close(layer(rows, torch.tensor([0, 0, 2, 2])), expected, 0)
