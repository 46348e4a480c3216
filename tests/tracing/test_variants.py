"""Variants: many changed runs of one text, by a model that is attached to once."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_same
from glassformer.errors import InterventionError
from glassformer.tracing.variants import Variants, run_variants
from letter_models import letter_model
from tracing.watched_architectures import built

TOKENS = torch.tensor([[5, 9, 4, 13, 24]])


def build(name: str) -> Any:
    return letter_model("decoder", n_layers=3) if name == "ours" else built(name, "sdpa")


def record(model: nn.Module, *given: Tensor) -> gf.Trace:
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(*given)
    return trace


def count_calls(module: nn.Module) -> tuple[list[int], Callable[[], None]]:
    calls: list[int] = []
    handle = module.register_forward_pre_hook(lambda *_: calls.append(1))
    return calls, handle.remove


@pytest.mark.parametrize("name", ["ours", "llama", "gpt2"])
def test_passes_of_one_attachment_are_those_of_many(name: str) -> None:
    model = build(name)
    trace = record(model, TOKENS)
    passes: list[list[Any]] = [
        [gf.Ablate("decoder.1.self", head=0), gf.Ablate("decoder.1.self", head=1)],
        [gf.Ablate("decoder.0.mlp"), gf.Scale("decoder.0.mlp", 0.5, positions=2)],
        [gf.Ablate("decoder.1.mlp") & gf.Ablate("decoder.1.self", head=1)],
        [gf.Ablate("decoder.0.mlp", positions=[1, 3])],
    ]
    with Variants(trace) as variants:
        together = [variants.run(each) for each in passes]
    for found, each in zip(together, passes, strict=True):
        assert_same(found, run_variants(trace, each))
        for i, change in enumerate(each):
            alone = gf.rerun(trace, change).residual().end
            torch.testing.assert_close(found[i : i + 1], alone, rtol=0, atol=1e-5)


def test_a_block_is_tried_once_for_all_passes() -> None:
    model = build("llama")
    trace = record(model, TOKENS)
    calls, stop = count_calls(model.model.layers[1].mlp)
    with Variants(trace) as variants:
        for _ in range(3):
            variants.run([gf.Ablate("decoder.1.mlp")])
    stop()
    assert len(calls) == 4  # one trial, three passes


def test_the_model_is_itself_between_passes_and_after_an_error() -> None:
    model = build("llama")
    trace = record(model, TOKENS)
    with torch.no_grad():
        plain = model(TOKENS).logits
        with Variants(trace) as variants:
            expected = variants.run([gf.Skip("decoder.1")])
            assert_same(model(TOKENS).logits, plain)
            with pytest.raises(InterventionError, match=r"decoder\.0 … decoder\.1; got"):
                variants.run([gf.Skip("decoder.9")])
            with pytest.raises(InterventionError, match="has the parts"):
                variants.run([gf.Ablate("decoder.1.cross")])
            with pytest.raises(InterventionError, match="concerns every sequence"):
                variants.run([gf.Swap("decoder.1.self", positions="none")])
            assert_same(variants.run([gf.Skip("decoder.1")]), expected)
        assert_same(model(TOKENS).logits, plain)


def test_a_change_of_the_encoder_reaches_the_decoder() -> None:
    model = letter_model("encoder_decoder", n_layers=2)
    trace = record(model, TOKENS, TOKENS.flip(1))
    with Variants(trace, stack="decoder") as variants:
        found = variants.run([gf.Ablate("encoder.1.self"), gf.Ablate("decoder.0.cross")])
    for i, change in enumerate((gf.Ablate("encoder.1.self"), gf.Ablate("decoder.0.cross"))):
        alone = gf.rerun(trace, change).residual("decoder").end
        torch.testing.assert_close(found[i : i + 1], alone, rtol=0, atol=1e-5)


def test_variants_are_of_one_sequence() -> None:
    trace = record(build("llama"), TOKENS.repeat(2, 1))
    with pytest.raises(InterventionError, match="one sequence; this trace has 2"):
        Variants(trace)
