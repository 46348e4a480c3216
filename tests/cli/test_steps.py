"""`glassformer steps`: typed numbers go through the five steps, and those of a model."""

import json

import pytest

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from letter_models import letter_model


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


def test_without_numbers_it_shows_the_worked_example(run):
    shown = run("steps")
    assert shown[0] == 0
    values = ("--values", "0.1 0; 1 0.2; 0.2 1")
    assert shown == run("steps", "12.5 30.8 25.1", "--tokens", "The cat sat", *values)
    code, _, err = run("steps", "--tokens", "The cat sat")
    assert code == 2 and "NUMBERS must be numbers" in err


def test_a_sentence_goes_to_the_included_reader(run):
    words = ("The cat sat.", "--word", "cat")
    assert run("steps", *words) == run("look", *words)
    plain = json.loads(run("steps", "The cat sat.", "--layer", "1", "--json")[1])
    assert plain["site"] == "encoder.1.self"


@pytest.fixture
def model(tmp_path):
    gf.save(letter_model("decoder"), tmp_path / "model")
    return tmp_path / "model"


def test_a_model_shows_the_steps_that_look_shows(run, model, tmp_path):
    chosen = ("--layer", "1", "--head", "0", "--word", "e")
    typed = run("steps", "hello", "-m", model, "--trace", tmp_path / "a.trace", *chosen)
    assert typed[0] == 0
    assert typed == run("look", "hello", "-m", model, *chosen)
    assert typed == run("steps", "--trace", tmp_path / "a.trace", *chosen)
    row = trace_text(letter_model("decoder"), "hello", None)["decoder.1.self"].row(0, 1)
    out = typed[1]
    assert "decoder.1.self, head 0, query 1: e" in out and "own output by at most" in " ".join(
        out.split()
    )
    for weight in row.weights.tolist():
        assert weight == 0 or f"{weight:.2f}" in out
    assert "加权求和" in run("steps", "hello", "-m", model, *chosen, "--lang", "zh")[1]


def test_the_last_token_unless_told(run, model):
    words = ("steps", "hello", "-m", model, "--site", "decoder.0.self", "--head", "1", "--json")
    plain = json.loads(run(*words)[1])
    assert (plain["site"], plain["head"], plain["query"]) == ("decoder.0.self", 1, 4)
    assert plain["keys"] == [*"hello"] and plain["difference"] < 1e-5
    row = trace_text(letter_model("decoder"), "hello", None)["decoder.0.self"].row(1, 4)
    assert plain["row"]["weights"] == pytest.approx(row.weights.tolist(), abs=1e-6)
    first = json.loads(run(*words, "--word", "0")[1])
    assert first["row"]["scores"][1:] == [None] * 4


@pytest.mark.plain
def test_numbers_and_models_are_not_mixed(run, model):
    for words, sentence in (
        (("1 2", "--head", "1", "--word", "a"), "--head, --word selects from a model or a trace"),
        (("hi", "-m", model, "--hide", "0"), "all numbers are the model's own; leave out --hide"),
        (("hi", "-m", model, "--word", "z"), "--word must be one of the tokens, h, i, or an index"),
        (("hi", "-m", model, "--layer", "7"), "Layers are 0 … 1; got --layer 7"),
    ):
        code, out, err = run("steps", *words)
        assert (code, out) == (2, "")
        assert sentence in err and err.count("\n") == 1


@pytest.mark.plain
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("steps", "1 b"), "NUMBERS must be numbers separated by spaces or commas; got '1 b'"),
        (("steps", "a b", "--width", "4"), "NUMBERS must be numbers"),
        (("steps", ""), "NUMBERS must be numbers"),
        (("steps", "1 nan"), "NUMBERS must be numbers"),
        (("steps", "1 2", "--tokens", "one"), "one word for each of the 2 numbers; got 1"),
        (("steps", "1 2", "--hide", "2"), "--hide takes indices from 0 to 1; got '2'"),
        (
            ("steps", "1 2", "--values", "1 2"),
            "--values needs 2 rows of equal length, separated by semicolons",
        ),
        (("steps", "1 2", "--width", "0"), "--width must be at least 1; got 0"),
    ],
)
def test_refusals(run, words, sentence):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1
