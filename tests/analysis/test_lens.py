"""The logit lens: the last border says what the model says, the others what their state says."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.errors import TraceError
from tiny_models import tiny
from tracing.test_stream import build
from tracing.watched_architectures import inputs


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "bart", "opt"])
def test_every_border_is_read_as_the_model_reads_its_last(name: str) -> None:
    model = build(name)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        logits = model(**inputs(model, "text")).logits
    lens = gf.logit_lens(trace, sequence=1, top=3)
    stream = trace.residual()
    assert lens.borders == stream.borders
    logs = logits[1].log_softmax(-1)
    values, tokens = logs.topk(3, dim=-1)
    assert torch.equal(lens.tokens[-1], tokens)
    assert_close(lens.probabilities[-1], values.exp(), 1e-6)
    assert_close(lens.entropy[-1], -(logs.exp() * logs).sum(-1), 1e-5)
    assert lens.divergence[-1].max() == 0 and lens.rank[-1].max() == 0
    # A border in the middle, by hand: its state takes the place of the last one.
    border = stream.borders[2]
    early = stream.readout(stream.after(border))[1].log_softmax(-1)
    assert torch.equal(lens.tokens[2], early.topk(3, dim=-1).indices)
    kl = torch.nn.functional.kl_div(early, logs, log_target=True, reduction="none").sum(-1)
    assert_close(lens.divergence[2], kl, 1e-4)
    best = logs.argmax(-1)
    ranks = [(row > row[i]).sum().item() for row, i in zip(early, best, strict=True)]
    assert lens.rank[2].tolist() == ranks


def test_the_norm_and_head_of_transformers_agree() -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        states = model(tokens, output_hidden_states=True).hidden_states
        theirs = model.lm_head(model.model.norm(states[1]))
    lens = gf.logit_lens(trace, top=4)
    at = lens.borders.index("decoder.0.mlp")
    assert torch.equal(lens.tokens[at], theirs[0].topk(4, dim=-1).indices)


def test_tokens_read_as_text() -> None:
    model = gf.load("translator")
    with gf.watch(model, residual=True) as trace:
        gf.translate(model, "The cat sat.", to="fr")
    lens = gf.logit_lens(trace)
    assert lens.labels[-1][-1][0] == "</s>" and lens.positions[-1] == "."
    assert "13 borders" in repr(lens)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"top": 0}, "top must be 1 … 100 tokens; got top=0"),
        ({"sequence": 3}, "sequences 0 … 0; got sequence=3"),
        ({"stack": "encoder"}, "The streams of this run are decoder; got 'encoder'"),
    ],
)
def test_what_is_asked_for_is_checked(options: dict, reason: str) -> None:
    model = tiny("llama")
    with gf.watch(model, residual=True) as trace:
        model(torch.arange(3, 9)[None])
    with pytest.raises(TraceError, match=reason):
        gf.logit_lens(trace, **options)


def test_a_model_without_scores_says_so() -> None:
    model = build("bert")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(**inputs(model, "text"))
    with pytest.raises(TraceError, match="the model gave no scores for tokens in this run"):
        gf.logit_lens(trace)


def test_chosen_positions_are_read_as_all_of_them_are() -> None:
    model, tokens = tiny("llama"), torch.arange(3, 9)[None]
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(tokens)
    whole, some = gf.logit_lens(trace), gf.logit_lens(trace, positions=[4, -6])
    assert some.positions == [whole.positions[4], whole.positions[0]]
    assert torch.equal(some.tokens, whole.tokens[:, [4, 0]])
    assert_close(some.probabilities, whole.probabilities[:, [4, 0]], 1e-6)
    assert torch.equal(some.rank, whole.rank[:, [4, 0]])
    with pytest.raises(TraceError, match="There are 6 positions; got position=6"):
        gf.logit_lens(trace, positions=[6])
