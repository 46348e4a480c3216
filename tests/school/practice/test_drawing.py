"""Drawings in many hands are read as the same graph; what is no arrow is kept as a line."""

import pytest

from glassformer.school.practice.drawing import read_drawing


def arrows(text):
    found = read_drawing(text)
    assert set(found.values()) <= {"arrow"}
    return set(found)


@pytest.mark.parametrize(
    "text",
    [
        "q -> scores\nk -> scores",
        "k->scores\n\n\n   q   ->   scores",
        "q, k -> scores",
        "k，q → scores;",
        "scores <- q + k",
        "scores ← k\nq --> scores",
        "- Q => Scores  # a comment -> with an arrow\n2) [K] ⟶ (scores).",
        "# q -> softmax\nq -> scores\n...\nk -> scores\n…",
    ],
)
def test_two_arrows_in_many_hands(text):
    assert arrows(text) == {"q -> scores", "k -> scores"}


def test_a_chain_and_several_targets():
    assert arrows("x -> q, k -> scores <- v") == {
        "x -> q",
        "x -> k",
        "q -> scores",
        "k -> scores",
        "v -> scores",
    }


@pytest.mark.parametrize("name", ["self_attention", "Self-Attention", "SELF  attention"])
def test_spellings_of_a_name(name):
    assert arrows(f"{name} -> add1") == {"self_attention -> add_1"}


@pytest.mark.parametrize(
    "line", ["x", "x q", "-> q", "x ->", "x <-> q", "x -> q,", "softmax(mask) -> out", "q ~ k"]
)
def test_a_line_that_is_no_arrow_is_kept_as_it_is(line):
    assert read_drawing(f"x -> q\n  {line}  ") == {"x -> q": "arrow", line: "line"}


def test_an_empty_drawing_has_no_arrows():
    assert read_drawing("\n  # nothing yet\n ...\n") == {}
