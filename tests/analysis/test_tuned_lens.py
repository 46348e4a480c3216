"""Tuned lenses: trained on some text, they read other text better than the logit lens does."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.analysis.ridge import Moments, solve_ridge
from glassformer.errors import TraceError
from letter_models import letter_model
from tiny_models import tiny
from tracing.test_stream import build
from tracing.watched_architectures import inputs


def test_the_writer_is_read_better_at_every_border() -> None:
    writer = gf.load("writer")
    texts = gf.generate(writer, ["And"] * 14, temperature=1.0, seed=0, max_new_tokens=50)
    seen: list[float] = []
    lens = gf.train_lens(writer, texts[:12], steps=6, positions=64, progress=seen.append)
    assert lens.borders == ["decoder.start", *(f"decoder.{i}.mlp" for i in range(4))]
    assert all(after < before for after, before in zip(lens.mapped, lens.plain, strict=True))
    assert lens.mapped[0] < 4 < 20 < lens.plain[0]
    assert seen == sorted(seen) and seen[-1] == 1.0
    # The same on texts that training never had.
    plain, tuned = 0.0, 0.0
    for text in texts[12:]:
        with torch.no_grad(), gf.watch(writer, residual=True) as trace:
            writer(torch.tensor([writer.tokenizer.encode(text)]))
        found = gf.logit_lens(trace, top=1)
        ends = [found.borders.index(name) for name in lens.borders]
        plain = plain + found.divergence[ends].sum(-1)
        tuned = tuned + gf.logit_lens(trace, lens=lens).divergence[:-1].sum(-1)
    assert (tuned < plain).all()


def batches(n: int) -> list[torch.Tensor]:
    return list(torch.randint(3, 37, (n, 2, 9), generator=torch.Generator().manual_seed(4)))


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "opt", "bert-masked"])
def test_models_of_transformers(name: str) -> None:
    model = tiny("bert") if name == "bert-masked" else build(name)
    before = {n: p.clone() for n, p in model.state_dict().items()}
    lens = gf.train_lens(model, batches(12), steps=8, positions=64, lr=1e-2)
    assert sum(lens.mapped) < sum(lens.plain)
    assert all(torch.equal(p, before[n]) for n, p in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(batches(1)[0])
    assert gf.logit_lens(trace, lens=lens).borders[:-1] == lens.borders


def test_batches_of_any_kind_without_their_padding() -> None:
    bart = build("bart")
    given = inputs(bart, "text")
    lens = gf.train_lens(bart, [given] * 4, steps=0)
    assert lens.stack == "decoder" and len(lens.borders) == 3
    llama = build("llama")
    given = inputs(llama, "text")
    other = given | {"input_ids": given["input_ids"].where(given["attention_mask"] > 0, 9)}
    first, second = (gf.train_lens(llama, [g] * 3, steps=1, seed=3) for g in (given, other))
    assert torch.equal(first.matrices, second.matrices)  # what padding says is not learnt


def test_a_seed_decides_everything_and_modes_are_kept() -> None:
    model = tiny("llama").train()
    first, second = (gf.train_lens(model, batches(5), steps=3, seed=7) for _ in range(2))
    assert torch.equal(first.matrices, second.matrices) and first.mapped == second.mapped
    assert all(module.training for module in model.modules())


def test_windows_are_no_longer_than_what_the_model_reads() -> None:
    model = letter_model("decoder")  # 40 tokens
    lens = gf.train_lens(model, ["the quick brown fox jumps over the lazy dog " * 5], steps=0)
    assert lens.borders == ["decoder.start", "decoder.0.mlp"]


def test_layers_are_chosen() -> None:
    model = tiny("llama")
    assert gf.train_lens(model, batches(4), layers=[0], steps=0).borders == ["decoder.0.mlp"]
    with pytest.raises(TraceError, match="A lens maps the ends of layers 0 … 0; got layer 1"):
        gf.train_lens(model, batches(4), layers=[1])


@pytest.mark.plain
@pytest.mark.parametrize(
    ("texts", "options", "reason"),
    [
        (["abc"], {}, "Reading texts needs a tokenizer"),
        ("abc", {}, "must be a list of texts or batches; got a single text"),
        ([], {}, "at least three windows of text, to learn, to choose and to measure; got 0"),
        (None, {"steps": -1}, "got steps=-1, positions=256, lr=0.001"),
        (None, {"length": 1}, "length must be at least 2 tokens; got length=1"),
    ],
)
def test_mistakes_are_one_sentence(texts, options: dict, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        gf.train_lens(tiny("llama"), batches(3) if texts is None else texts, **options)


def test_a_model_without_scores_is_refused() -> None:
    with pytest.raises(TraceError, match="the model gave no scores for tokens in this run"):
        gf.train_lens(build("bert"), batches(3))


def test_ridge_finds_an_affine_map_and_is_shrunk_towards_none() -> None:
    torch.manual_seed(5)
    A, b = torch.randn(7, 7).double(), torch.randn(7).double()
    x = torch.randn(400, 7).double() * torch.logspace(-3, 3, 7) + 2
    noise = torch.randn(400, 7).double()
    fit, check, few, other = (Moments(7) for _ in range(4))
    fit.add(x[:300], x[:300] @ A.mT + b)
    check.add(x[300:], x[300:] @ A.mT + b)
    found, bias = solve_ridge(fit, check)
    assert_close(x @ found.mT + bias, x @ A.mT + b, 1e-3 * float((x @ A.mT).abs().max()))
    few.add(x[:5, :], x[:5] + 0.1 * noise[:5])  # nothing but noise to learn from
    other.add(x[300:], x[300:] + 0.1 * noise[300:])
    found, bias = solve_ridge(few, other)
    assert (x @ found.mT + bias - x).abs().max() < 0.2
