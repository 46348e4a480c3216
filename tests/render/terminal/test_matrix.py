import pytest
import torch
from rich.cells import cell_len

import glassformer as gf
from glassformer.errors import ShapeError
from glassformer.render.terminal.matrix import draw_scores, draw_weights
from render.paper import drawn, lines

WORDS = ["我", "爱", "你"]
SCORES = torch.tensor([[10.0, 8.0, 5.0], [9.0, 12.0, 11.0], [4.0, 7.0, 9.0]])
MASK = gf.Causal().dense(3)[0, 0]
MASKED = SCORES.masked_fill(~MASK, -torch.inf)


def test_scores():
    assert lines(draw_scores(MASKED, WORDS, WORDS, title="scores")) == [
        "scores",
        "    我  爱  你",
        "我  10  −∞  −∞",
        "爱   9  12  −∞",
        "你   4   7   9",
    ]


def test_weights():
    assert lines(draw_weights(MASKED.softmax(-1), WORDS, WORDS, allowed=MASK)) == [
        "          我        爱        你",
        "我  ██ 1.000         ·         ·",
        "爱  ░░ 0.047  ██ 0.953         ·",
        "你  ░░ 0.006  ░░ 0.118  ██ 0.876",
    ]


def test_the_docstrings_show_what_is_drawn():
    two, words = MASKED[:2], WORDS
    assert drawn(draw_scores.__doc__) == lines(draw_scores(two, words[:2], words))
    weights = two[:, :2].softmax(-1)
    assert drawn(draw_weights.__doc__) == lines(draw_weights(weights, words[:2], words[:2]))


def test_a_weight_of_nothing_that_is_allowed_is_a_zero_and_no_dot():
    weights = torch.tensor([[1.0, 0.0]])
    everything = torch.ones(1, 2, dtype=torch.bool)
    assert lines(draw_weights(weights, ["a"], ["b", "c"], allowed=everything))[1].endswith("   0")
    assert lines(draw_weights(weights, ["a"], ["b", "c"]))[1].endswith("·")


def test_columns_stay_in_line_whatever_the_tokens():
    tokens = ["The", "猫猫", " sat\n", "[red]"]
    rows = lines(draw_scores(torch.randn(4, 4), tokens, tokens))
    assert len({cell_len(row) for row in rows}) == 1


def test_tokens_must_fit():
    with pytest.raises(ShapeError, match=r"got \(3, 3\) with 2 tokens for rows and 3 for columns"):
        draw_scores(SCORES, WORDS[:2], WORDS)
    with pytest.raises(ShapeError, match=r"got \(3, 3\) with 3 tokens for rows and 1 for columns"):
        draw_weights(SCORES, WORDS, WORDS[:1])
