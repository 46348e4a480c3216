"""Looks: what wrote q, k and v, held against the same change made to the stream by hand."""

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.analysis.looks import LookReader
from glassformer.analysis.writers import Writer
from glassformer.errors import TraceError
from letter_models import letter_model
from tiny_models import tiny
from tracing.watched_architectures import built

TOKENS = torch.tensor([[5, 9, 4, 13, 24, 6]])
SITE, HEAD, ROW, KEY = "decoder.1.self", 1, 5, 2


def record(model: nn.Module) -> gf.Trace:
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(TOKENS)
    return trace


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt-neox", "qwen2"])
def test_a_writer_of_the_query_is_what_its_own_vector_gives(name: str) -> None:
    """By hand: the module's own projection of the vector, normed with the size of the whole."""
    model = built(name, "sdpa")
    trace = record(model)
    looks = LookReader(trace).open(SITE)
    found = looks.split_query(HEAD, ROW, KEY)
    total = sum(looks.read_query(HEAD, ROW, writer) for writer in found.shares)
    row = trace[SITE].row(HEAD, ROW)
    nothing = looks.none.q[0, HEAD, ROW].detach().double()
    bias = 0.0
    norm = looks.query_side.norm
    if norm is not None and norm.bias is not None:  # what the norm's bias gives
        bias = row.q.double() - nothing - total
    assert (row.q.double() - nothing - total - bias).abs().max() < 1e-5
    contrast = row.k[KEY].double() - row.k.double().mean(0)
    for writer, share in found.shares.items():
        by_hand = looks.read_query(HEAD, ROW, writer) @ contrast * row.scale
        assert abs(float(by_hand) - share) < 1e-5


def test_removing_a_writer_changes_the_score_by_its_share() -> None:
    """With norms frozen that is exact: a model without norms has nothing to freeze."""
    model = letter_model("decoder", n_layers=2).double()
    for block in model.decoder.blocks:
        block.attention_norm = block.feed_forward_norm = nn.Identity()
    trace = record(model)
    looks = LookReader(trace).open(SITE)
    by_query, by_key = looks.split_query(HEAD, ROW, KEY), looks.split_key(HEAD, ROW, KEY)
    writer = Writer("decoder.0.self", 0)

    def score(changed: gf.Trace) -> float:
        row = changed[SITE].row(HEAD, ROW)
        return float(row.scaled[KEY] - row.scaled[row.allowed].mean())

    both = by_query.shares[writer] + by_key.shares[writer]
    twice = looks.split_key(HEAD, ROW, KEY, looks.read_query(HEAD, ROW, writer)).shares[writer]
    # The feed-forward between reads the head too: freeze what it adds.
    mlp = gf.Patch("decoder.0.mlp", trace)
    changed = gf.rerun(trace, gf.Ablate("decoder.0.self", head=0) & mlp)
    assert abs(score(trace) - score(changed) - (both - twice)) < 1e-9
    assert abs(twice) > 1e-6


@pytest.mark.parametrize("name", ["bert", "modernbert", "bart"])
def test_encoders_and_cross_attention(name: str) -> None:
    model = built(name, "sdpa")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(TOKENS)
    reader = LookReader(trace)
    for site in ("encoder.1.self", "decoder.1.cross"):
        if site not in trace.names:
            continue
        looks = reader.open(site)
        seen = torch.ones(trace[site].v.shape[-1], dtype=torch.float64)
        value = looks.split_value(HEAD, ROW, KEY, seen)
        assert abs(sum(value.shares.values()) + value.constant - value.value) < 1e-5
        keys = looks.split_key(HEAD, ROW, KEY)
        assert keys.writers.stream.name == "encoder"
        assert abs(keys.value - looks.split_query(HEAD, ROW, KEY).value) < 1e-9


def test_what_cannot_be_followed_is_refused() -> None:
    llama = tiny("llama")
    trace = record(llama)
    with pytest.raises(TraceError, match="is not known"):
        LookReader(trace).open("decoder.9.self")
    model = letter_model("decoder", n_layers=2)
    with gf.watch(model, residual=True, heads=[0]) as trace:
        model(TOKENS)
    with pytest.raises(TraceError, match="recorded in part"):
        LookReader(trace).open(SITE)


def test_gradients_are_left_as_they_were() -> None:
    model = letter_model("decoder", n_layers=2)
    trace = record(model)
    LookReader(trace).open(SITE).split_query(HEAD, ROW, KEY)
    assert all(p.grad is None for p in model.parameters())
    out: Tensor = model(TOKENS)
    assert out.shape[1] == 6 and not model.decoder.blocks[1].attention._forward_pre_hooks
