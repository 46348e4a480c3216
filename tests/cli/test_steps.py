"""`glassformer steps`: typed numbers go through the five steps."""

import json

import pytest


def test_the_textbook_numbers(run):
    code, out, err = run("steps", "12.5 30.8 25.1", "--tokens", "The cat sat")
    assert (code, err) == (0, "")
    for number in ("1.56", "3.85", "3.14", "0.06", "0.63", "0.31", "√64 = 8"):
        assert number in out
    assert "加权求和" in run("steps", "1,2", "--values", "1 0; 0 1", "--lang", "zh")[1]


def test_a_mask_and_values(run):
    words = ("steps", "10, 8, 5", "--width", "1", "--hide", "1 2", "--values", "1 2; 3 4; 5 6")
    plain = json.loads(run(*words, "--json")[1])
    assert plain["weights"] == [1.0, 0.0, 0.0] and plain["out"] == [1.0, 2.0]
    assert plain["scores"] == [10.0, None, None]
    out = run(*words)[1]
    assert "−∞" in out


def test_everything_hidden_is_zeros(run):
    plain = json.loads(run("steps", "1 2", "--hide", "0 1", "--json")[1])
    assert plain["weights"] == [0.0, 0.0]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("steps", "a b"), "NUMBERS must be numbers, apart by blanks or commas; got 'a b'"),
        (("steps", ""), "NUMBERS must be numbers"),
        (("steps", "1 nan"), "NUMBERS must be numbers"),
        (("steps", "1 2", "--tokens", "one"), "one word for each of the 2 numbers; got 1"),
        (("steps", "1 2", "--hide", "2"), "--hide must name places from 0 to 1; got '2'"),
        (("steps", "1 2", "--values", "1 2"), "--values must have 2 rows of one length"),
        (("steps", "1 2", "--width", "0"), "--width must be at least 1; got 0"),
    ],
)
def test_refusals(run, words, sentence):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1
