"""Attribution patching: its estimates are the derivative of real patches, taken by small steps."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import InterventionError
from glassformer.models.config import Norms
from letter_models import letter_model
from tracing.watched_architectures import built

CLEAN, CORRUPTED = torch.tensor([[5, 9, 4, 13, 24]]), torch.tensor([[5, 21, 4, 13, 24]])
STEP, NEAR = 1e-4, 1e-6
FLOAT32 = 3e-3, 2e-3  # step and tolerance where norms compute in float32 whatever they are given
MODELS = ["ours", "post-norm", "llama", "gpt2", "gpt-neox"]


def measure(logits: Tensor) -> Tensor:
    return logits[:, 7] - logits[:, 11] + logits[:, 3] ** 2 / 10


def build(name: str) -> Any:
    torch.manual_seed(5)
    if name in ("ours", "post-norm"):
        place: Any = "pre" if name == "ours" else "post"
        return letter_model("decoder", n_layers=2, norms=Norms(place=place)).double()
    return built(name, "sdpa").double()


def heads_of(model: Any, layer: int) -> tuple[nn.Module, bool]:
    """Where the heads of a layer can be reached by a hook; whether it is by what a matrix reads."""
    if isinstance(model, gf.models.Decoder):
        return model.decoder.blocks[layer].attention.core, False
    if hasattr(model, "transformer"):
        return model.transformer.h[layer].attn.c_proj, True
    if hasattr(model, "gpt_neox"):
        return model.gpt_neox.layers[layer].attention.dense, True
    return model.model.layers[layer].self_attn.o_proj, True


def parts_of(model: Any, layer: int) -> dict[str, nn.Module]:
    if isinstance(model, gf.models.Decoder):
        block = model.decoder.blocks[layer]
        return {"self": block.attention, "mlp": block.feed_forward}
    if hasattr(model, "transformer"):
        return {"self": model.transformer.h[layer].attn, "mlp": model.transformer.h[layer].mlp}
    if hasattr(model, "gpt_neox"):
        block = model.gpt_neox.layers[layer]
        return {"self": block.attention, "mlp": block.mlp}
    return {"self": model.model.layers[layer].self_attn, "mlp": model.model.layers[layer].mlp}


@contextmanager
def adding(module: nn.Module, value: Tensor, *, to_input: bool = False) -> Iterator[None]:
    """Add a tensor to what a module returns, or to what it reads."""

    def after(_module: nn.Module, _args: tuple, out: Any) -> Any:
        return out + value if isinstance(out, Tensor) else (out[0] + value, *out[1:])

    def before(_module: nn.Module, args: tuple) -> tuple:
        return (args[0] + value, *args[1:])

    with ExitStack() as stack:
        if to_input:
            handle = module.register_forward_pre_hook(before)
        else:
            handle = module.register_forward_hook(after)
        stack.callback(handle.remove)
        yield


def slope(model: nn.Module, change: Callable[[float], Any], size: float = STEP) -> float:
    """The derivative of the metric, by a step in both directions."""
    found = []
    for step in (size, -size):
        with torch.no_grad(), change(step):
            out = model(CORRUPTED)
        found.append(float(measure((out if isinstance(out, Tensor) else out.logits)[:, -1])[0]))
    return (found[0] - found[1]) / (2 * size)


def record(model: nn.Module, tokens: Tensor) -> gf.Trace:
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    return trace


@pytest.mark.parametrize("name", MODELS)
def test_estimates_of_heads_are_slopes_of_patches(name: str) -> None:
    model = build(name)
    clean, corrupted = record(model, CLEAN), record(model, CORRUPTED)
    options: Any = {"metric": measure, "method": "gradient"}
    by_head = gf.sweep(model, CLEAN, CORRUPTED, over="heads", **options)
    by_cell = gf.sweep(model, CLEAN, CORRUPTED, over="heads × positions", **options)
    assert by_head.method == "gradient" and by_head.estimates is None
    for layer in range(2):
        site = f"decoder.{layer}.self"
        step = clean[site].head_outputs() - corrupted[site].head_outputs()  # (1, H, L, E)
        module, reads = heads_of(model, layer)
        for head, position in ((0, None), (1, 3)):
            only = torch.zeros_like(step)
            at = slice(None) if position is None else position
            only[:, head, at] = step[:, head, at]
            only = only.transpose(1, 2).flatten(2) if reads else only
            size, near = FLOAT32 if name == "llama" else (STEP, NEAR)
            expected = slope(
                model, lambda e, m=module, x=only, r=reads: adding(m, e * x, to_input=r), size
            )
            if position is None:
                got = by_head.values[layer, head] - by_head.corrupted
            else:
                row = by_cell.rows.index(f"{site}.{head}")
                got = by_cell.values[row, position] - by_cell.corrupted
            assert_close(got, torch.tensor(expected, dtype=torch.float64), near, f"{site} {head}")


@pytest.mark.parametrize("name", MODELS)
def test_estimates_of_parts_are_slopes_of_patches(name: str) -> None:
    model = build(name)
    streams = [record(model, tokens).residual() for tokens in (CLEAN, CORRUPTED)]
    found = gf.sweep(
        model, CLEAN, CORRUPTED, over="parts × positions", metric=measure, method="gradient"
    )
    for layer in range(2):
        for kind, module in parts_of(model, layer).items():
            part = f"decoder.{layer}.{kind}"
            step = streams[0].part(part).value - streams[1].part(part).value
            only = torch.zeros_like(step)
            only[:, 2] = step[:, 2]
            size, near = FLOAT32 if name == "llama" else (STEP, NEAR)
            expected = slope(model, lambda e, m=module, x=only: adding(m, e * x), size)
            got = found.values[found.rows.index(part), 2] - found.corrupted
            assert_close(got, torch.tensor(expected, dtype=torch.float64), near, part)


@pytest.mark.parametrize("name", ["ours", "post-norm", "gpt2"])
def test_estimates_of_borders_are_slopes_of_patches(name: str) -> None:
    model = build(name)
    streams = [record(model, tokens).residual() for tokens in (CLEAN, CORRUPTED)]
    found = gf.sweep(
        model, CLEAN, CORRUPTED, over="borders × positions", metric=measure, method="gradient"
    )
    for row, border in enumerate(found.rows):
        step = (streams[0].after(border) - streams[1].after(border))[0, 1]

        def steer(size: float, border: str = border, step: Tensor = step) -> Any:
            return gf.change(model, gf.Steer(border, step, factor=size, positions=1))

        got = found.values[row, 1] - found.corrupted
        assert_close(got, torch.tensor(slope(model, steer), dtype=torch.float64), NEAR, border)


def test_both_say_how_far_the_estimates_are_off() -> None:
    model = build("ours")
    found = gf.sweep(model, CLEAN, CORRUPTED, metric=measure, method="both")
    patched = gf.sweep(model, CLEAN, CORRUPTED, metric=measure)
    alone = gf.sweep(model, CLEAN, CORRUPTED, metric=measure, method="gradient")
    assert found.estimates is not None and found.errors is not None
    assert torch.equal(found.values, patched.values)
    assert torch.equal(found.estimates, alone.values)
    assert torch.equal(found.errors, alone.effects - patched.effects)
    agreement = found.agreement
    assert agreement is not None and -1 <= agreement.correlation <= 1
    assert agreement.worst.estimate is not None
    off = abs(agreement.worst.estimate - agreement.worst.effect)
    assert off == pytest.approx(float(found.errors.abs().max()))
    assert "rank correlation" in str(found) and patched.agreement is None


def test_parameters_that_need_no_gradient_have_none_and_all_stay_as_they_were() -> None:
    model = build("llama")
    expected = gf.sweep(model, CLEAN, CORRUPTED, metric=measure, method="gradient")
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_(False)
    with torch.no_grad():
        found = gf.sweep(model, CLEAN, CORRUPTED, metric=measure, method="gradient")
    assert_close(found.values, expected.values, 1e-12)


def test_a_metric_without_a_gradient_is_refused() -> None:
    def detached(logits: Tensor) -> Tensor:
        return measure(logits.detach())

    with pytest.raises(InterventionError, match="that PyTorch can differentiate"):
        gf.sweep(build("ours"), CLEAN, CORRUPTED, metric=detached, method="gradient")
