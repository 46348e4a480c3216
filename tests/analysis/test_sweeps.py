"""Sweeps: every patch as one would make it alone, all of them in few passes."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import InterventionError
from glassformer.tracing.interventions.values import Intervention
from letter_models import letter_model
from tracing.watched_architectures import built

CLEAN, CORRUPTED = torch.tensor([[5, 9, 4, 13, 24]]), torch.tensor([[5, 21, 4, 13, 24]])


def measure(logits: Tensor) -> Tensor:
    return logits[:, 7] - logits[:, 11]


def build(name: str) -> nn.Module:
    return letter_model("decoder", n_layers=3) if name == "ours" else built(name, "sdpa")


def run(model: nn.Module, change: Intervention, position: int) -> float:
    with torch.no_grad(), gf.change(model, change):
        out = model(CORRUPTED)
    logits = out if isinstance(out, Tensor) else out.logits
    return float(measure(logits[:, position])[0])


@pytest.mark.parametrize("name", ["ours", "llama", "gpt2", "gpt-neox"])
def test_a_sweep_is_every_patch_alone(name: str) -> None:
    model = build(name)
    with torch.no_grad(), gf.watch(model, residual=True) as clean:
        model(CLEAN)
    stream = clean.residual()
    states = stream.states_of_model()
    expected: dict[str, dict[tuple[int, int], Intervention]] = {
        "heads": {(1, 1): gf.Patch("decoder.1.self", clean, head=1)},
        "heads × positions": {
            (1, 2): gf.Patch("decoder.0.self", clean, head=1, positions=2),
            (0, 0): gf.Patch("decoder.0.self", clean, head=0, positions=0),
        },
        "parts": {(1, 0): gf.Patch(stream.parts[1].name, clean)},
        "parts × positions": {(3, 1): gf.Patch(stream.parts[3].name, clean, positions=1)},
        "borders × positions": {
            (0, 1): gf.Patch("decoder.start", clean, what="state", positions=1),
            (1, 4): gf.Patch(states[1], clean, what="state", positions=4),
        },
    }
    for over, cells in expected.items():
        done: list[tuple[int, int]] = []

        def report(n: int, total: int, done: list[tuple[int, int]] = done) -> None:
            done.append((n, total))

        how: Any = {"over": over, "metric": measure, "batch": 3, "report": report}
        found = gf.sweep(model, CLEAN, CORRUPTED, **how)
        assert not found.values.isnan().any() and done[-1][0] == done[-1][1] == len(
            found.values.flatten()
        )
        for (i, j), change in cells.items():
            alone = run(model, change, -1)
            assert_close(found.values[i, j], torch.tensor(alone, dtype=torch.float64), 1e-4, over)
    assert found.rows == states  # of the last: the start decides everything
    total = gf.sweep(model, CLEAN, CORRUPTED, over="borders × positions", metric=measure)
    assert_close(total.effects[0, 1], torch.tensor(1.0, dtype=torch.float64), 1e-3)


def test_another_position_and_a_pair_of_tokens() -> None:
    model = letter_model("decoder", n_layers=2)
    found = gf.sweep(model, "abcde", "abxde", over="heads", metric=("q", "z"), position=3)
    assert found.measured == "logit 'q' − 'z'" and found.columns == ["0", "1"]
    assert "decoder.1.self" in str(found) and "clean run" in repr(found)
    with torch.no_grad(), gf.watch(model, residual=True) as clean:
        model(torch.tensor([model.tokenizer.encode("abcde")]))
    by_trace = gf.sweep(model, clean, "abxde", over="heads", metric=("q", "z"), position=3)
    assert torch.equal(by_trace.values, found.values)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"over": "layers"}, "over must be one of heads"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"method": "integral"}, "method must be one of patch, gradient, both; got 'integral'"),
        ({"method": "gradient", "resume": "x"}, "with nothing to resume"),
        ({"corrupted": "abxdef"}, "same number of tokens; got 1 × 5 and 1 × 6"),
        ({"corrupted": "abcde"}, "must differ in"),
        ({"metric": lambda logits: logits[:, 0] / 0}, "one finite number for each"),
        ({"metric": lambda logits: logits}, "one finite number for each"),
        ({"metric": "q"}, "two tokens, or a function"),
        ({"metric": ("q", "qq")}, "A token must be one of the vocabulary"),
        ({"position": 9}, "There are 5 positions; got position=9"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(given: dict[str, Any], said: str) -> None:
    model = letter_model("decoder", n_layers=2)
    options: dict[str, Any] = {"corrupted": "abxde", "metric": ("q", "z"), **given}
    with pytest.raises(gf.GlassformerError, match=said):
        gf.sweep(model, "abcde", **options)


def test_a_text_needs_a_tokenizer() -> None:
    with pytest.raises(InterventionError, match="A text needs a tokenizer"):
        gf.sweep(built("llama", "sdpa"), "a b", "a c", metric=(1, 2))
