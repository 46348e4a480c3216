"""`glassformer why`: a tree of contributions and a verdict."""

import json
import re

import pytest

HAN = re.compile("[\u4e00-\u9fff]")


def test_a_prediction_is_explained_and_tested(run):
    code, out, err = run("why", "The king of the north went down into the", COLUMNS=100)
    assert code == 0 and "Traceback" not in err
    assert out.startswith("Logit of ␣midst minus that of ␣north, after ␣the: +")
    assert re.search(r"decoder\.\d\.self\.\d", out) and "␣into (7)" in out
    told = " ".join(out.split())
    assert re.search(r"kept alone, the 8 named parts carry −?-?\d+ % of the difference", told)
    assert re.search(r"\d+ of 10 random sets of as many parts come as close; without them", told)


def test_another_text_can_stand_in(run):
    words = ("why", "The king of the north went down into the", "--json")
    usual, other = (
        json.loads(run(*words, *more)[1])["verdict"]
        for more in ((), ("--reference", "A ship sailed slowly over the wide grey sea."))
    )
    assert usual["whole"] == other["whole"] and usual["none"] != other["none"]


def test_numbers_add_up_in_json(run):
    _, out, _ = run("why", "And God said unto", "--token", " him", "--against", " Moses", "--json")
    found = json.loads(out)
    assert (found["token"], found["against"]) == ("␣him", "␣Moses")
    total = sum(reason["value"] for reason in found["reasons"]) + found["rest"]
    assert abs(total - found["logit"]) < 1e-4 and len(found["reasons"]) == 8
    assert abs(found["verdict"]["whole"] - found["logit"]) < 1e-4


def test_a_translation_in_chinese(run):
    words = ("The cat sat on the mat.", "--to", "fr", "--position", "1", "--lang", "zh")
    code, out, _ = run("why", *words, "--top", "4")
    assert code == 0 and HAN.search(out) and "decoder.3.cross.1" in out and "␣cat（2）" in out


def test_bad_input_is_one_sentence(run):
    for words, said in (
        (("why", "And God", "--token", "no such token"), "must be one of the vocabulary"),
        (("why", "And God", "--position", "9"), "There are 2 positions"),
        (
            ("why", "And God", "--top", "0"),
            "top, branches and depth must be at least 1; got --top 0",
        ),
        (("why", "The king [MASK].", "--model", "nowhere"), "nowhere"),
    ):
        code, out, err = run(*words)
        assert code == 2 and not out and said in err and len(err.strip().splitlines()) == 1


def test_a_figure_and_a_page_of_the_tree(run, tmp_path):
    pytest.importorskip("matplotlib")
    svg, html = tmp_path / "a.svg", tmp_path / "a.html"
    code, out, err = run("why", "And God said unto", "--top", "3", "--svg", svg, "--html", html)
    assert (code, err) == (0, "") and "Tested by running the model" in out
    assert "Tested by running the model" in " ".join(svg.read_text("utf-8").split())
    assert '"kind":"tree"' in html.read_text("utf-8")
