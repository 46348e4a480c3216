"""Scores of heads: means of whole matrices, and heads made to play a part."""

import pytest
import torch
from torch import nn

import glassformer as gf
from closeness import assert_close
from glassformer.analysis.head_scoring import _mean_weight, draw_repeated
from glassformer.analysis.token_model import TokenModel
from glassformer.errors import TraceError
from letter_models import letter_model
from tiny_models import tiny
from tracing.test_stream import build
from tracing.watched_architectures import ARCHITECTURES

N, LENGTH = 3, 7


def expected(weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """From whole matrices (B, H, L, L), cell by cell."""
    L = weights.shape[-1]
    cells = {
        "previous": [(i, i - 1) for i in range(2, L)],
        "duplicate": [(i, i - LENGTH) for i in range(1 + LENGTH, L)],
        "induction": [(i, i - LENGTH + 1) for i in range(1 + LENGTH, L)],
        "sink": [(i, 0) for i in range(2, L)],
    }
    return {
        name: torch.stack([weights[:, :, i, j] for i, j in pairs]).mean((0, 1))
        for name, pairs in cells.items()
    }


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert", "t5", "gpt-oss", "mistral"])
def test_scores_are_means_of_the_weights_that_the_model_returns(name: str) -> None:
    model = build(name)
    found = gf.head_scores(model, sequences=N, length=LENGTH, seed=3, copying=False)
    subject = TokenModel(model, "head_scores")
    tokens = draw_repeated(subject, N, LENGTH, 3)
    model.set_attn_implementation("eager")
    given = {"decoder_input_ids": tokens} if subject.has_source else {}
    with torch.no_grad():
        out = model(input_ids=tokens, output_attentions=True, **given)
    stacks = {"decoder": getattr(out, "attentions", None)}
    if name == "bert":
        stacks = {"encoder": out.attentions}
    if subject.has_source:
        stacks = {"encoder": out.encoder_attentions, "decoder": out.decoder_attentions}
    for stack, layers in stacks.items():
        for i, weights in enumerate(layers):
            for score, values in expected(weights).items():
                ours = [found.of(f"{stack}.{i}.self", h)[score] for h in range(len(values))]
                assert_close(torch.tensor(ours), values, 1e-5)


def test_our_models_and_their_chance() -> None:
    """A head whose queries are zero attends evenly: it scores what chance does."""
    model = letter_model("decoder", n_layers=1)
    queries = model.decoder.blocks[0].attention.qkv
    queries.weight.data[:16] = queries.bias.data[:16] = 0
    found = gf.head_scores(model, length=12, copying=False)
    for name, chance in found.chance.items():
        assert_close(found.scores[name], torch.full((2,), chance), 1e-5)
    rows = torch.arange(2, 25)
    assert abs(found.chance["sink"] - float((1 / (rows + 1)).mean())) < 1e-6


def test_an_induction_head_scores_one() -> None:
    """Queries ask for what follows the earlier copy; made by hand, one head for each part."""
    L = 1 + 2 * LENGTH
    where = {"previous": -1, "duplicate": -LENGTH, "induction": 1 - LENGTH}
    scores = torch.zeros(1, len(where), L, L)
    for head, ahead in enumerate(where.values()):
        scores[0, head] = 60.0 * torch.eye(L).roll(ahead, 1)
    q = torch.eye(L).expand(1, len(where), L, L)
    site = gf.record(q, scores.mT.contiguous(), torch.zeros(1, 3, L, 2), scale=1.0)
    rows = torch.arange(1 + LENGTH, L)
    for head, ahead in enumerate(where.values()):
        assert float(_mean_weight(site, rows, rows + ahead)[head]) > 0.999


def test_tokens_are_distinct_plain_and_seeded() -> None:
    subject = TokenModel(tiny("llama"), "head_scores")
    tokens = draw_repeated(subject, N, LENGTH, 0)
    assert tokens.shape == (N, 1 + 2 * LENGTH) and set(tokens[:, 0].tolist()) == {0}
    assert torch.equal(tokens[:, 1 : 1 + LENGTH], tokens[:, 1 + LENGTH :])
    assert all(len(set(row.tolist())) == 1 + LENGTH for row in tokens)
    assert not {0, 1, 2} & set(tokens[:, 1:].flatten().tolist())  # begin, padding, end
    assert torch.equal(tokens, draw_repeated(subject, N, LENGTH, 0))
    assert not torch.equal(tokens, draw_repeated(subject, N, LENGTH, 1))


def test_copying_is_that_of_the_circuits() -> None:
    model = tiny("llama")
    found = gf.head_scores(model, length=LENGTH)
    theirs = gf.circuits(model)
    by_hand = torch.cat([theirs.copying(f"decoder.{i}.self") for i in range(2)])
    assert torch.equal(found.scores["copying"], by_hand)
    table = str(found)
    assert "12 heads of LlamaForCausalLM on 4 × 7 random tokens, each said twice (seed 0)" in table
    assert all(f"  {name} " in table for name in found.scores)
    best = found.top("copying", 1)[0]
    assert best[2] == float(by_hand.max()) and best[:2] in found.heads


def test_what_cannot_be_scored_is_said() -> None:
    found = gf.head_scores(build("bert"), length=LENGTH)
    assert found.refusals == {
        "copying": "The stream of 'encoder' has no readout: it gives no scores for tokens."
    }
    with pytest.raises(TraceError, match="The stream of 'encoder' has no readout"):
        found.top("copying")
    with pytest.raises(TraceError, match="A score is one of previous, duplicate, induction, sink"):
        found.top("name")
    with pytest.raises(TraceError, match="The heads scored are"):
        found.of("encoder.0.self", 9)
    found = gf.head_scores(build("bitnet"), length=LENGTH)
    assert "lies more than a matrix" in found.refusals["copying"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"length": 12},
            "length must be 2 … 11 tokens for LlamaForCausalLM, which reads each twice",
        ),
        ({"length": 1}, "got length=1"),
        ({"sequences": 0}, "sequences must be at least 1; got sequences=0"),
    ],
)
def test_lengths_are_checked(options: dict, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        gf.head_scores(tiny("llama"), **options)


def test_the_model_stays_as_it_is() -> None:
    model = tiny("llama").train()
    gf.head_scores(model)
    assert all(module.training for module in model.modules())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_modules_of_pytorch_are_refused() -> None:
    with pytest.raises(TraceError, match="head_scores needs a model of glassformer or transf"):
        gf.head_scores(nn.MultiheadAttention(8, 2))


@pytest.mark.parametrize("name", ["longt5", "led"])
def test_attention_in_pieces_is_left_out(name: str) -> None:
    assert ARCHITECTURES[name].reads == "text"
    found = gf.head_scores(build(name), length=LENGTH, copying=False)
    assert {site.split(".")[0] for site, _ in found.heads} == {"decoder"}
    assert any(site.startswith("encoder.0.self") for site in found.refusals)
