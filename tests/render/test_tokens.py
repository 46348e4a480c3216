"""Rows that predict are named by the token they read and the one that comes next."""

from itertools import pairwise

import pytest
import torch

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.languages import Language
from glassformer.render.sampled_queries import sample_queries, select_evenly
from glassformer.render.tokens import is_cross, next_tokens, predicts_next, row_labels, row_title
from glassformer.tracing import Run, Trace, TracedText, record, watch
from letter_models import letter_model


def read_by(mask, *, n=4, name="decoder.0.self", labels=True, following=()) -> Trace:
    q, k, v = torch.randn(3, 1, 2, n, 4).unbind(0)
    site = record(q, k, v, mask=mask, name=name)
    words = TracedText(torch.arange(9, 9 + n)[None], [[*"abcdefgh"[:n]]] if labels else [])
    words.following = list(following)
    return Trace([Run({name: site}, {"tokens": words})])


def test_causal_rows_name_the_next_token():
    trace = read_by(gf.Causal())
    site = trace["decoder.0.self"]
    assert row_labels(trace, site) == ["a → b", "b → c", "c → d", "d"]
    trace.run.texts["tokens"].following = ["</s>"]
    assert row_labels(trace, site)[-1] == "d → </s>"


@pytest.mark.parametrize("name", ["encoder.0.self", "decoder.0.self", "attention"])
@pytest.mark.parametrize("mask", [None, gf.Window(1, 1), gf.Prefix(2) | gf.Causal()])
def test_rows_that_see_ahead_keep_plain_tokens(mask, name):
    """Whatever they are called: a model that sees the next token does not predict it."""
    trace = read_by(mask, name=name)
    assert row_labels(trace, trace[name]) == [*"abcd"]


def test_without_a_tokenizer_numbers_and_without_tokens_places():
    trace = read_by(gf.Causal(), labels=False)
    site = trace["decoder.0.self"]
    assert row_labels(trace, site) == ["9 → 10", "10 → 11", "11 → 12", "12"]
    trace.run.texts["tokens"].tokens = torch.arange(4)[None]  # as where embeddings were given
    assert row_labels(trace, site) == [*"0123"]
    trace.run.texts.clear()
    assert row_labels(trace, site) == [*"0123"]


def test_a_translation():
    model = letter_model("encoder_decoder")
    trace = trace_text(model, "hello")
    written = gf.translate(model, "hello").replace(" ", "␣")
    end = trace_text(model, "hello").run.texts["tokens"].following
    names = ["<s>", *written, *end]
    pairs = [f"{a} → {b}" for a, b in pairwise(names)]
    for name in ("decoder.0.cross", "decoder.1.self"):
        labels = row_labels(trace, trace[name])
        assert labels[: len(written)] == pairs[: len(written)]
        assert predicts_next(trace, trace[name])
    assert row_labels(trace, trace["encoder.0.self"]) == [*"hello"]
    given = trace_text(model, "hello", "abc")
    assert row_labels(given, given["decoder.0.cross"]) == ["<s> → a", "a → b", "b → c", "c"]


def test_generation_knows_its_last_token():
    model = letter_model("decoder")
    with watch(model) as trace:
        text = gf.generate(model, "hello", max_new_tokens=3)
    assert len(text) == 3
    labels = row_labels(trace, trace["decoder.0.self"])
    expected = [*"hello", *text.replace(" ", "␣")]
    assert labels == [f"{a} → {b}" for a, b in pairwise(expected)]


def test_beams_leave_the_last_token_open():
    """What a beam would have gone on with is not what was written."""
    model = letter_model("encoder_decoder")
    with watch(model) as trace:
        gf.translate(model, "hello", beams=2, max_new_tokens=3)
    assert next_tokens(trace, trace["decoder.0.cross"], 0)[-1] is None


def test_the_last_token_is_saved(tmp_path):
    trace = read_by(gf.Causal(), following=["z"])
    trace.save(tmp_path / "a.trace")
    again = Trace.load(tmp_path / "a.trace")
    assert row_labels(again, again["decoder.0.self"])[-1] == "d → z"


def test_chosen_and_sampled_rows_keep_their_next_token(monkeypatch):
    model = letter_model("decoder", max_len=64)
    with watch(model, rows=[1, 4]) as trace, torch.no_grad():
        model(torch.tensor([model.tokenizer.encode("hello")]))
    assert row_labels(trace, trace["decoder.0.self"]) == ["e → l", "o"]
    whole = read_by(gf.Causal(), n=8)
    monkeypatch.setattr("glassformer.render.sampled_queries._MOST_CELLS", 8 * 8)
    monkeypatch.setattr("glassformer.render.sampled_queries._LEAST_QUERIES", 2)
    some = sample_queries(whole)
    site = some["decoder.0.self"]
    assert site.rows == select_evenly(whole["decoder.0.self"], 4).rows == (0, 2, 5, 7)
    assert row_labels(some, site) == ["a → b", "c → d", "f → g", "h"]


def test_queries_that_continue_a_cache():
    trace = read_by(gf.Causal(), following=["z"])
    site = trace["decoder.0.self"]
    site.q = site.q[:, :, 2:]
    assert row_labels(trace, site) == ["c → d", "d → z"]


def test_a_sink_before_the_keys_is_no_other_text():
    trace = read_by(gf.Causal())
    site = trace["decoder.0.self"]
    site.keys = "sink and tokens"
    assert not is_cross(site)
    site.keys = "source"
    assert is_cross(site)


def test_long_tokens_are_cut_on_both_sides():
    trace = read_by(gf.Causal(), n=2)
    trace.run.texts["tokens"].labels = [["hippopotamus", "rhinoceros"]]
    assert row_labels(trace, trace["decoder.0.self"], most=5)[0] == "hipp… → rhin…"


def test_what_the_rows_are_in_both_languages():
    causal, plain = read_by(gf.Causal()), read_by(None)
    titles = [
        row_title(trace, trace["decoder.0.self"], Language(code))
        for code in ("en", "zh")
        for trace in (causal, plain)
    ]
    assert titles == [
        "token read → next token (query)",
        "token (query)",
        "读入的词元 → 下一个词元（查询）",
        "词元（查询）",
    ]
