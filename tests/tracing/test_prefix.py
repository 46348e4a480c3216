"""Tokens before the first change are not read again, and what is found is the same."""

from typing import Any

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.tracing.prefix import first_changed, hides_future
from glassformer.tracing.variants import Variants
from letter_models import letter_model
from tracing.watched_architectures import built

L = 20
ALIKE = ["llama", "gpt2", "mistral", "qwen2", "gemma2", "gpt-neox", "opt", "bloom", "olmo2"]
EAGER = {"gemma2", "bloom"}


@pytest.fixture(autouse=True)
def short_texts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.tracing.prefix.LEAST", 8)


def build(name: str) -> Any:
    if name == "ours":
        return letter_model("decoder", n_layers=3)
    if name == "ours, windowed":
        return letter_model("decoder", n_layers=3, window=6)
    return built(name, "eager" if name in EAGER else "sdpa")


def record(model: Any, *, seed: int) -> gf.Trace:
    tokens = torch.randint(3, 20, (1, L), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    return trace


@pytest.mark.parametrize("name", ["ours", "ours, windowed", *ALIKE])
def test_only_later_tokens_are_read_and_the_ends_are_those_of_whole_runs(name: str) -> None:
    model = build(name)
    clean, corrupted = record(model, seed=1), record(model, seed=2)
    lengths: list[int] = []
    block = next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList))[-1]
    changes = [
        [gf.Patch("decoder.1.self", clean, head=0, positions=[14])],
        [
            gf.Patch("decoder.0.mlp", clean, positions=[L - 1]),
            gf.Scale("decoder.1.mlp", 0.0, positions=11),
        ],
        [gf.Ablate("decoder.1.self", head=1, positions=slice(6, 9))],
    ]
    with Variants(corrupted) as variants:
        for _ in range(2):  # the second proves the prefix
            variants.run(changes[0])
        assert variants.prefix is not None
        hook = block.register_forward_pre_hook(
            lambda _, args, given: lengths.append(
                (args[0] if args else given["hidden_states"]).shape[1]
            ),
            with_kwargs=True,
        )
        found = [variants.run(each) for each in changes]
        hook.remove()
    assert {L - 14, L - 11, L - 6} <= set(lengths)
    for ends, each in zip(found, changes, strict=True):
        for end, change in zip(ends, each, strict=True):
            whole = gf.rerun(corrupted, change).residual().end[0]
            assert_close(end, whole, 1e-5)
            assert not torch.equal(end, corrupted.residual().end[0])


def test_what_cannot_be_continued_is_read_whole() -> None:
    model = built("bert", "sdpa")  # every token sees every other
    tokens = torch.randint(3, 20, (1, L))
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    change = gf.Scale("encoder.1.mlp", 0.5, positions=L - 2)
    with Variants(trace) as variants:
        (end,) = variants.run([change])
        assert variants.prefix is None
    assert_close(end, gf.rerun(trace, change).residual().end[0], 1e-6)


def test_a_cache_that_is_wrong_is_found_out() -> None:
    model = letter_model("decoder", n_layers=3)
    trace = record(model, seed=1)
    change = gf.Scale("decoder.1.mlp", 0.5, positions=14)
    with Variants(trace) as variants:
        assert variants.prefix is not None
        k, v = variants.prefix.pairs[1]
        variants.prefix.pairs[1] = (k, v.roll(1, dims=2))
        variants.run([change])
        assert variants.prefix is not None  # not used yet
        (end,) = variants.run([change])
        assert variants.prefix is None
    assert_close(end, gf.rerun(trace, change).residual().end[0], 1e-6)


@pytest.mark.parametrize(
    ("edits", "first"),
    [
        ([gf.Scale("decoder.1.mlp", 0.5, positions=[7, 3])], 3),
        ([gf.Scale("decoder.1.mlp", 0.5, positions=-1)], 9),
        ([gf.Scale("decoder.1.mlp", 0.5, positions=5), gf.Scale("decoder.1.mlp", 0.5)], 0),
        ([gf.Ablate("decoder.1.self", head=1, how="mean", positions=4)], 0),
        ([gf.Ablate("decoder.1.self", head=1, how="zero", positions=4)], 4),
        ([gf.Knockout("decoder.1.self", queries=4, keys=1)], 0),
        ([gf.Skip("decoder.1")], 0),
        ([], 0),
    ],
)
def test_the_first_position_that_changes(edits: list[Any], first: int) -> None:
    assert first_changed(edits, 10) == first


@pytest.mark.parametrize(
    ("mask", "is_hidden"),
    [
        (gf.Causal(), True),
        (gf.Causal() & gf.Window(3), True),
        (gf.Padding(torch.tensor([3])) & gf.Causal(), True),
        (gf.Explicit(torch.ones(5, 5).tril().bool()), True),
        (gf.Explicit(torch.ones(5, 5).bool()), False),
        (gf.Causal() | gf.Window(3), False),
        (gf.Window(3, 1), False),
        (gf.Causal(offset=1), False),
        (None, False),
    ],
)
def test_whether_the_future_is_hidden(mask: gf.Mask | None, is_hidden: bool) -> None:
    assert hides_future(mask) is is_hidden


def test_a_sweep_over_positions_is_that_of_single_patches() -> None:
    model = letter_model("decoder", n_layers=2)
    clean, corrupted = record(model, seed=1), record(model, seed=2)
    found = gf.sweep(model, clean, corrupted, over="heads × positions", metric=(4, 5), batch=8)
    logits = corrupted.residual().require_readout()
    for row, column in [(0, 0), (2, 13), (3, L - 1)]:
        site, _, head = found.rows[row].rpartition(".")
        change = gf.Patch(site, clean, head=int(head), positions=[column])
        scores = logits(gf.rerun(corrupted, change).residual().end[:, -1:])[0, 0]
        assert float(found.values[row, column]) == pytest.approx(
            float(scores[4] - scores[5]), abs=1e-5
        )
