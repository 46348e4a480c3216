"""`glassformer lens`: what the model would say after every layer."""

import json
import re

import pytest

HAN = re.compile("[\u4e00-\u9fff]")


def test_a_text_is_read_after_every_layer(run):
    code, out, err = run("lens", "And God said unto", COLUMNS=120)
    assert code == 0 and "Traceback" not in err
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("decoder.")]
    assert [row[0] for row in rows] == [
        *(f"decoder.{i}.mlp" for i in (4, 3, 2, 1, 0)),
        "decoder.start",
    ]
    assert rows[0][-2] == "␣him"
    assert "After ␣unto the model predicts ␣him with" in out


def test_the_last_row_is_what_generating_writes(run):
    _, out, _ = run("lens", "And God said unto", "--json")
    found = json.loads(out)
    _, written, _ = run("generate", "And God said unto", "--max-new", "1", "--temperature", "0")
    assert written.strip().endswith(found["tokens"][-1][-1][0].strip("␣ "))
    assert found["rank"][-1] == [0] * len(found["positions"])
    assert found["divergence"][-1] == [0.0] * len(found["positions"])
    assert len(found["tokens"][0][0]) == 5


def test_parts_and_chinese(run):
    code, out, _ = run("lens", "The cat sat.", "--to", "fr", "--parts", "--lang", "zh")
    assert code == 0 and "decoder.2.cross" in out
    assert "排在第一位" in out and HAN.search(out)


def test_an_encoder_predicts_at_a_position(run):
    code, out, _ = run("lens", "The cat sat.", "--model", "reader")
    assert code == 0 and "At [SEP] the model predicts" in out


def test_a_narrow_window_shows_the_last_positions(run):
    code, out, _ = run("lens", "And God said unto Moses, Go down, for thy people", COLUMNS=50)
    assert code == 0 and re.search(r"The last \d+ of \d+ positions are shown", out)
    assert max(map(len, out.splitlines())) <= 50


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lens", "a", "--top", "0"), "--top must be 1 … 100 tokens; got --top 0"),
        (("lens", ""), "at least one token"),
        (("lens", "a", "-m", "nowhere"), "nowhere"),
    ],
)
def test_mistakes_are_one_line(run, words, said):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1
