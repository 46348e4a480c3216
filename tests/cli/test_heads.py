"""`glassformer heads`: the heads that score highest, and what the scores mean."""

import json
import re

import pytest

HAN = re.compile("[\u4e00-\u9fff]")


def test_the_best_heads_of_every_score(run):
    code, out, err = run("heads", "--top", "2", COLUMNS=100)
    assert code == 0 and "Traceback" not in err
    rows = [line for line in out.splitlines() if re.search(r"decoder\.\d\.self\.\d", line)]
    assert len(rows) == 5 * 2
    assert "decoder.2.self.2" in rows[0] and "previous token" in rows[0]
    assert "20 heads, tested on 4 × 50 random tokens, each sequence read twice (seed 0)." in out
    assert "not that the model depends on it" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100


def test_on_a_text_each_head_is_removed(run):
    words = ("heads", "The king and the queen, and the king and the", "--top", "3")
    code, out, err = run(*words, COLUMNS=100)
    assert code == 0 and "Traceback" not in err
    rows = [line for line in out.splitlines() if re.search(r"decoder\.\d\.self\.\d", line)]
    effects = [float(row.split()[1]) for row in rows]
    assert len(rows) == 3 and effects == sorted(effects, reverse=True)
    assert "20 heads, each removed by itself; the median effect is" in out
    code, out, _ = run(*words, "--json")
    found = json.loads(out)["heads"]
    assert code == 0 and len(found) == 20 and found[0].keys() == {"site", "head", "effect", "loss"}
    assert round(max(head["effect"] for head in found), 4) == effects[0]


def test_json_has_every_head(run):
    code, out, _ = run("heads", "--json", "--length", "9", "--sequences", "2", "--seed", "5")
    found = json.loads(out)
    assert code == 0 and len(found["heads"]) == 20
    assert (found["length"], found["sequences"], found["seed"]) == (9, 2, 5)
    first = found["heads"][0]
    assert first.keys() == {
        *("site", "head", "previous", "duplicate", "induction", "sink", "copying")
    }
    assert all(0 <= head["induction"] <= 1 for head in found["heads"])


def test_what_is_missing_is_said_and_chinese(run):
    code, out, _ = run("heads", "--model", "reader", "--lang", "zh")
    assert code == 0 and HAN.search(out)
    assert "复制 没有数值：" in out and "encoder.0.self" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("heads", "--length", "1"), "--length must be 2 … "),
        (("heads", "--sequences", "0"), "--sequences must be at least 1; got --sequences 0"),
        (("heads", "--top", "0"), "--top must be 1 … 100 "),
        (("heads", "-m", "nowhere"), "nowhere"),
    ],
)
def test_mistakes_are_one_line(run, words, said):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1
