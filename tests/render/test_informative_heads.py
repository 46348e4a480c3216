"""What is opened on: a head whose keys depend on the query, at a pair of words."""

import pytest
import torch

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.render.focus import choose_focus
from glassformer.render.informative_heads import find_most_informative
from glassformer.render.tokens import next_tokens, token_names
from glassformer.tracing import Run, Trace, TracedText, record


def attending(*heads, words, keys=None, name="decoder.0.cross") -> Trace:
    """Heads with given weights, by way of their logarithms as a bias."""
    bias = torch.tensor(heads, dtype=torch.float32).clamp(min=1e-9).log()[None]
    _, H, L, S = bias.shape
    site = record(
        torch.zeros(1, H, L, 2), torch.zeros(1, H, S, 2), torch.zeros(1, H, S, 2), bias=bias
    )
    site.name, site.keys = name, "source" if keys else "tokens"
    texts = {"tokens": TracedText(torch.arange(L)[None], [words])}
    if keys:
        texts["source"] = TracedText(torch.arange(S)[None], [keys])
    return Trace([Run({name: site}, texts)])


EVEN = [[1 / 3] * 3] * 3
SINK = [[0.98, 0.01, 0.01]] * 3
ALIGNED = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]


def test_a_head_that_depends_on_the_query_and_not_the_sharpest():
    trace = attending(
        EVEN, SINK, ALIGNED, words=["un", "chat", "noir"], keys=["one", "black", "cat"]
    )
    found = choose_focus(trace)
    assert float(found.site.sharpness(1)) > float(found.site.sharpness(2))
    assert found.head == 2


def test_words_go_before_marks_and_special_tokens():
    sharp_on_marks = [[0.02, 0.03, 0.95], [0.03, 0.95, 0.02], [0.6, 0.2, 0.2]]
    trace = attending(sharp_on_marks, words=["<s>", ".", "chat"], keys=["cat", ".", "</s>"])
    assert choose_focus(trace)[1:] == (0, 2, 0)


def test_marks_where_there_is_nothing_else():
    trace = attending([[0.2, 0.8], [0.7, 0.3]], words=["<s>", "."], keys=[".", "</s>"])
    assert choose_focus(trace)[2:] == (0, 1)


def test_itself_its_neighbours_and_the_first_key_tell_nothing():
    n = 6
    own = torch.eye(n).tolist()
    first = [[1.0] + [0.0] * (n - 1)] * n
    far = [[0.0] * n for _ in range(n)]
    for row, col in enumerate((3, 4, 5, 5, 1, 2)):
        far[row][col] = 1.0
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
    found = choose_focus(attending(own, first, far, words=words, name="encoder.0.self"))
    assert found.head == 2 and (found.row, found.col) in {(0, 3), (1, 4), (2, 5), (4, 1), (5, 2)}


def test_without_texts_every_token_counts():
    trace = attending(EVEN, ALIGNED, words=["a", "b", "c"], keys=["x", "y", "z"])
    trace.run.texts.clear()
    assert choose_focus(trace)[1:] == (1, 0, 1)


def test_one_head_alone():
    trace = attending(EVEN, ALIGNED, SINK, words=["un", "deux", "trois"], keys=["one", "two", "x"])
    assert choose_focus(trace, head=2).head == 2
    assert find_most_informative(trace, list(trace), head=0).head == 0


# Sentences on which nothing was tuned, of other lengths, moods and words.
SENTENCES = [
    "Good morning, doctor!",
    "She reads a book every evening.",
    "Could you open the window, please?",
    "The government announced new measures against the crisis on Monday.",
    "We did not know that the museum was closed.",
    "Rain.",
    "It is 7 o'clock, and Anna is still waiting for the bus.",
]


@pytest.fixture(scope="module")
def models():
    return {name: gf.load(name) for name in ("translator", "writer", "reader")}


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("case", ["fr", "zh", "writer", "reader"])
def test_shipped_models_open_on_words(models, sentence, case):
    if case in ("fr", "zh"):
        trace = trace_text(models["translator"], sentence, to=case)
    else:
        trace = trace_text(models[case], sentence)
    site, head, row, col = choose_focus(trace)
    read, keys = token_names(trace, site)
    about = next_tokens(trace, site)[row] or read[row]
    crossing = case in ("fr", "zh")
    assert site.name.endswith(".cross") == crossing
    assert (about, keys[col]) != (".", "</s>")
    if len(keys) > 6 or crossing:  # one word alone has no other to attend to
        for token in (about, keys[col]):
            assert any(c.isalnum() for c in token) and token[0] not in "<[", token
        share = float(site.weights(head=head, rows=[row], cols=[col]))
        assert share > 1.5 / int(site.visible(head)[row])  # more than an even share
    if len(keys) > 6 and not crossing:
        assert col not in (0, int(site.query_positions[row]))
