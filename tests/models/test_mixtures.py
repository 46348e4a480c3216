"""Whole models with mixtures of experts: caches, generation, watching, int8, counting, training."""

from pathlib import Path

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import ConfigError
from glassformer.functional.quantized import QuantizedWeight
from glassformer.generation import generate_tokens
from glassformer.generation.direct import DirectSession
from glassformer.layers import MixtureOfExperts
from glassformer.models import Config, Experts, Output, build
from glassformer.models.decoder_weights import refusal
from glassformer.models.description import describe
from glassformer.models.parameters import count_active_parameters, count_parameters
from glassformer.models.shape_costs import measure_costs
from glassformer.models.shapes import shapes

V, N, K, M = 13, 5, 2, 11
EXPERTS = Experts(n_experts=N, n_active=K, hidden_dim=M, n_shared=1, dense_layers=(1,))


def config(family: str = "decoder", **changes) -> Config:
    plain = {"vocab_size": V, "dim": 12, "n_layers": 3, "n_heads": 2, "max_len": 24}
    return Config(family=family, **(plain | {"gated": True, "experts": EXPERTS} | changes))


def model(family: str = "decoder", **changes) -> torch.nn.Module:
    torch.manual_seed(0)
    built = build(config(family, **changes)).double().eval()
    for parameter in built.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return built


def tokens(B: int = 2, n: int = 7) -> torch.Tensor:
    return torch.randint(0, V, (B, n))


def test_layers_are_mixtures_unless_they_are_dense() -> None:
    kinds = [isinstance(block.feed_forward, MixtureOfExperts) for block in model().decoder.blocks]
    assert kinds == [True, False, True]


@pytest.mark.parametrize("static", [False, True])
def test_steps_with_a_cache_are_the_whole(static: bool) -> None:
    decoder, x = model(), tokens()
    cache = decoder.new_cache(2, max_len=11 if static else None)
    with torch.no_grad():
        pieces = [decoder(x[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, 7))]
        assert_close(torch.cat(pieces, 1), decoder(x), 1e-10)


@pytest.mark.parametrize("family", ["encoder", "encoder_decoder"])
def test_other_families_have_experts_too(family: str) -> None:
    built = model(family)
    with gf.watch_routing(built) as routing, torch.no_grad():
        _ = built(tokens()) if family == "encoder" else built(tokens(), tokens(2, 5))
    stacks = ["encoder"] if family == "encoder" else ["encoder", "decoder"]
    assert sorted(routing) == sorted(f"{stack}.{i}" for stack in stacks for i in (0, 2))


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_decoding_goes_by_the_modules_and_writes_the_same(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = model(family, output=Output(tied=False)).float()
    assert refusal(built) == "its feed-forward networks are mixtures of experts"
    monkeypatch.setattr(DirectSession, "__init__", None)  # must not be made
    prompts, source = [[1, 2, 3], [4, 5]], [[6, 7, 8], [9]] if family != "decoder" else None
    written = generate_tokens(built, prompts, max_new_tokens=6, source=source)
    fixed = generate_tokens(built, prompts, max_new_tokens=6, source=source, fixed=True)
    assert written == fixed
    assert len({*written[0], *written[1]}) > 2  # not one token for ever
    for i, prompt in enumerate(prompts):
        row = torch.tensor([prompt])
        for _ in range(6):
            given = (row,) if source is None else (torch.tensor([source[i]]), row)
            row = torch.cat([row, built(*given)[:, -1:].argmax(-1)], 1)
        assert written[i] == row[0, len(prompt) :].tolist()


@pytest.mark.plain
def test_a_compiled_step_writes_the_same() -> None:
    built = model().float()
    plain = generate_tokens(built, [[1, 2, 3]], max_new_tokens=5)
    assert generate_tokens(built, [[1, 2, 3]], max_new_tokens=5, compiled=True) == plain


def test_watching_gives_the_weights_and_changes_nothing() -> None:
    built, x = model(), tokens()
    with torch.no_grad():
        before = built(x)
        with gf.watch(built, residual=True) as trace:
            after = built(x)
    assert_same(after, before)
    assert [site.name for site in trace] == [f"decoder.{i}.self" for i in range(3)]
    assert_close(trace["decoder.2.self"].weights().sum(-1), torch.ones(2, 7).double(), 1e-12)


def test_int8_covers_the_experts_and_not_the_routers(tmp_path: Path) -> None:
    whole = model().float()
    small = gf.quantize(whole, "int8")
    mixture = small.decoder.blocks[0].feed_forward
    assert isinstance(mixture.expert_up.weight, QuantizedWeight)
    assert isinstance(mixture.expert_down.weight, QuantizedWeight)
    assert not isinstance(mixture.router.weight, QuantizedWeight)
    rounded = build(config()).eval()
    rounded.load_state_dict({name: tensor + 0 for name, tensor in small.state_dict().items()})
    x = tokens()
    with torch.no_grad():
        assert_close(small(x), rounded(x), 0.25)  # rows of x are rounded too
        assert (small(x) - whole(x)).abs().max() > 1e-4
    gf.save(small, tmp_path / "small")
    again = gf.load(tmp_path / "small")
    with torch.no_grad():
        assert_same(again(x), small(x))
    assert len(generate_tokens(small, [[1, 2]], max_new_tokens=3)[0]) == 3


def test_own_folders_hold_experts_and_their_selection_bias(tmp_path: Path) -> None:
    built = model(experts=Experts(n_experts=4, n_active=1, hidden_dim=3, selection_bias=True))
    built.decoder.blocks[1].feed_forward.router.selection_bias[2] = 5.0
    gf.save(built, tmp_path / "saved")
    again, x = gf.load(tmp_path / "saved"), tokens()
    assert again.config == built.config
    assert_same(again(x), built(x))
    with gf.watch_routing(again) as routing:
        again(x)
    assert (routing["decoder.1"].experts == 2).all()


def test_parameters_flops_and_shapes_count_what_is_active() -> None:
    settings = config(biases="none")
    built, described = build(settings), describe(settings)
    trace = shapes(settings, batch=1, length=1)
    costs = measure_costs(trace)
    assert described.parameters == count_parameters(built) == sum(c.parameters for c in costs)
    per_expert = 3 * 12 * M
    assert described.active_parameters == count_active_parameters(built)
    assert described.parameters - described.active_parameters == 2 * (N - K) * per_expert
    attention = sum(
        cost.flops
        for step, cost in zip(trace.steps, costs, strict=True)
        if step.operation in ("scores", "attend")
    )
    assert sum(c.flops for c in costs) - attention == described.flops_per_token
    up = next(s for s in trace.steps if s.module.endswith("0.feed_forward.expert_up"))
    assert up.outputs[0].letters == ("B", "L", "k", "2M")
    assert up.parameters[0].letters == ("N", "2M", "C")
    assert (trace.sizes["N"], trace.sizes["k"], trace.sizes["M"]) == (N, K, M)


def test_routing_is_what_the_routers_decided() -> None:
    built, x = model(), tokens()
    with torch.no_grad(), gf.watch_routing(built) as routing:
        built(x)
    layer = routing["decoder.2"]
    assert layer.experts.shape == layer.weights.shape == (14, K)
    assert layer.load.tolist() == [int((layer.experts == i).sum()) for i in range(N)]
    assert_close(layer.shares.double(), layer.load.double() / 28, 1e-7)
    assert_close(layer.weights.sum(-1), torch.ones(14).double(), 1e-12)
    assert not any(part._forward_hooks for part in built.modules())


def test_the_balance_loss_is_theirs_over_k() -> None:
    """transformers' loss of one layer sums the shares of k choices; ours averages them."""
    mixtral = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")
    built, x = model(experts=Experts(n_experts=N, n_active=K, hidden_dim=M)), tokens()
    inputs = []
    router = built.decoder.blocks[1].feed_forward.router
    handle = router.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    with gf.watch_routing(built) as routing:
        built(x)
    handle.remove()
    logits = (inputs[0] @ router.weight.T).flatten(0, 1)
    theirs = mixtral.load_balancing_loss_func((logits,), N, K)
    assert_close(routing["decoder.1"].balance_loss().float(), theirs / K, 1e-6)
    mean = torch.stack([layer.balance_loss() for layer in routing.values()]).mean()
    assert_close(routing.balance_loss(), mean, 0)
    routing.balance_loss().backward()
    assert router.weight.grad.abs().max() > 0


@pytest.mark.plain
@pytest.mark.parametrize(
    ("experts", "sentence"),
    [
        ({"n_active": 6}, r"n_active must be 1 … n_experts; got n_active=6, n_experts=5"),
        ({"gate": "relu"}, r"experts.gate must be one of softmax, sigmoid; got 'relu'"),
        ({"hidden_dim": 0}, r"experts.hidden_dim must be at least 1; got 0"),
    ],
)
def test_experts_that_cannot_be(experts: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Experts(**({"n_experts": N, "n_active": K, "hidden_dim": M} | experts))


@pytest.mark.plain
def test_dense_layers_and_routing_that_do_not_exist() -> None:
    with pytest.raises(ConfigError, match=r"dense_layers must be layers below 1, .*; got \(1,\)"):
        config(n_layers=1)
    with (
        pytest.raises(ConfigError, match=r"Decoder has no router"),
        gf.watch_routing(model(experts=None)),
    ):
        pass
