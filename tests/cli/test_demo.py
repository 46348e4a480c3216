import contextlib
import io
import json
import math
import re

import pytest
import torch
from rich.cells import cell_len

from glassformer.cli.demo_screens import NEXT_LINES
from glassformer.cli.worked_examples import as_dict, cat_row, three_words
from glassformer.functional.backends.native import find_kernel
from glassformer.languages import CODES

CAT = ["12.5", "30.8", "25.1", "1.56", "3.85", "3.14", "0.06", "0.63", "0.31", "1.59"]
WORDS = ["0.047", "0.953", "0.006", "0.118", "0.876"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """The demo writes into the folder it is called in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("lang", CODES)
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_numbers_are_there_and_the_lines_fit(run, lang, width):
    code, out, err = run("demo", "--lang", lang, COLUMNS=width)
    assert (code, err) == (0, "")
    for number in CAT + WORDS:
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", out), number
    assert max(map(cell_len, out.splitlines())) <= min(width, 100)
    assert "\x1b" not in out
    assert "{" not in out
    parts = ("… →", "→ …")  # a piece of the translation that is only a part of a letter
    assert "…" not in "".join(
        line for line in out.splitlines() if not any(part in line for part in parts)
    )


@pytest.mark.parametrize("lang", CODES)
def test_every_part_is_there(run, lang):
    _, out, _ = run("demo", "--lang", lang)
    titles = [line for line in out.splitlines() if line.endswith("──") and line[0] != " "]
    assert [line[0] for line in titles] == list("123456789")
    assert "我  10  −∞  −∞" in out
    assert "Causal() & Window(left=3)" in out and "Causal() | Prefix(length=3)" in out
    chosen = ["native", "native"] if find_kernel() is not None else ["sdpa", "streaming"]
    assert re.findall(r"^ +(native|sdpa|streaming|flex): ", out, re.MULTILINE) == chosen
    assert "4,194,304" in out
    for line in NEXT_LINES.splitlines():
        assert f"   {line}\n" in out


@pytest.mark.parametrize("lang", CODES)
def test_the_cat_is_translated_and_looked_at(run, lang, elsewhere):
    _, out, _ = run("demo", "--lang", lang)
    assert "Le chat" in out and "猫" in out
    flat = " ".join(out.split()).replace("， ", "，")
    told = {
        "en": r"“Le”, it puts (\d+)% of its attention on “cat” and writes “chat”",
        "zh": r"“猫”之后，它把 (\d+)% 的注意力放在“sat”上",
    }
    assert int(re.search(told[lang], flat)[1]) > 80
    assert "[1,4," in out and "cross" in out
    page, picture = (elsewhere / "glassformer-demo" / name for name in ("cat.html", "cat.png"))
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_cannot_be_written_is_no_end(run, elsewhere):
    (elsewhere / "glassformer-demo").write_text("mine")
    code, out, _ = run("demo")
    assert code == 0 and "9  " in out
    flat = " ".join(out.split())
    assert "cat.html was not written: " in flat and "cat.png was not written: " in flat
    assert (elsewhere / "glassformer-demo").read_text() == "mine"


def test_what_was_written_is_said_although_something_failed(run, elsewhere):
    (elsewhere / "glassformer-demo" / "cat.png").mkdir(parents=True)
    code, out, _ = run("demo")
    flat = " ".join(out.split())
    assert code == 0 and "every head and every number" in flat
    assert "cat.png was not written: " in flat and "cat.html was not written" not in flat
    assert (elsewhere / "glassformer-demo" / "cat.html").is_file()


def test_it_is_said_that_the_vectors_are_random(run):
    flat = " ".join(run("demo")[1].split())
    assert "Random vectors mean nothing" in flat
    assert "随机向量没有含义" in run("demo", "--lang", "zh")[1].replace("\n   ", "")


def test_it_shows_the_same_every_time(run):
    assert run("demo") == run("demo")


def test_json_holds_the_numbers_of_both_examples(run):
    code, out, err = run("demo", "--json")
    assert (code, err) == (0, "")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    numbers = json.loads(out, parse_constant=refuse)
    assert numbers == as_dict()
    five, causal = numbers["five_steps"], numbers["causal"]
    assert (five["query"], five["tokens"]) == ("cat", ["The", "cat", "sat"])
    dots = torch.tensor(five["dots"], dtype=torch.float64)
    weights = (dots / 8).softmax(-1)
    torch.testing.assert_close(torch.tensor(five["weights"], dtype=torch.float64), weights)
    out = weights @ torch.tensor(five["v"], dtype=torch.float64)
    torch.testing.assert_close(torch.tensor(five["out"], dtype=torch.float64), out)
    assert causal["masked"] == [[10, None, None], [9, 12, None], [4, 7, 9]]
    assert run("demo", "--json", "--lang", "zh")[1] == run("demo", "--json")[1]


def test_the_worked_example_by_hand():
    row = cat_row()
    assert [round(x, 2) for x in row.scaled.tolist()] == [1.56, 3.85, 3.14]
    exps = [math.exp(x / 8) for x in (12.5, 30.8, 25.1)]
    expected = torch.tensor([e / sum(exps) for e in exps], dtype=torch.float64)
    torch.testing.assert_close(row.weights, expected)


def test_the_three_words_by_hand():
    words = three_words()
    assert words.scores.tolist() == [[10, 8, 5], [9, 12, 11], [4, 7, 9]]
    assert torch.equal(words.mask, torch.ones(3, 3).tril().bool())
    e = math.exp
    expected = [
        [1.0, 0.0, 0.0],
        [e(9) / (e(9) + e(12)), e(12) / (e(9) + e(12)), 0.0],
        [e(score) / (e(4) + e(7) + e(9)) for score in (4, 7, 9)],
    ]
    torch.testing.assert_close(words.weights, torch.tensor(expected, dtype=torch.float64))


def test_the_lines_to_try_next_run():
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(NEXT_LINES, "next", "exec"), {})
    assert "head 0, query 4, key 1" in output.getvalue()
