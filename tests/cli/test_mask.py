import json

import pytest
from rich.cells import cell_len

from glassformer.languages import CODES


def test_a_mask_in_words_and_marks(run):
    assert run("mask", "causal & window(1)", "--queries", "4") == (
        0,
        "Causal() & Window(left=1)\n"
        "4 queries (rows) × 4 keys (columns): ■ may attend, · may not\n"
        "\n"
        "  ■ · · ·\n"
        "  ■ ■ · ·\n"
        "  · ■ ■ ·\n"
        "  · · ■ ■\n",
        "",
    )


def test_every_sequence_of_a_batch(run):
    code, out, _ = run("mask", "padding([1, 2])", "--queries", "1", "--lang", "zh")
    assert code == 0
    assert out == (
        "Padding(lengths=[1, 2])\n"
        "1 个查询（行）× 2 个键（列）：■ 可以关注，· 不可以关注\n"
        "\n"
        "第 1 个序列，共 2 个\n"
        "  ■ ·\n"
        "\n"
        "第 2 个序列，共 2 个\n"
        "  ■ ■\n"
    )


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        (["causal"], (8, 8)),
        (["causal", "--queries", "3"], (3, 3)),
        (["causal", "--keys", "5"], (5, 5)),
        (["causal", "--queries", "3", "--keys", "5"], (3, 5)),
        (["causal | prefix(4)"], (7, 7)),
        (["documents([0, 0, 1, 1])"], (4, 4)),
    ],
)
def test_sizes(run, words, sizes):
    code, out, _ = run("mask", "--json", *words)
    rows = json.loads(out)
    assert (code, len(rows), {len(row) for row in rows}) == (0, sizes[0], {sizes[1]})


def test_json(run):
    code, out, err = run("mask", "causal", "--queries", "2", "--keys", "3", "--json")
    assert (code, json.loads(out), err) == (0, [[1, 1, 0], [1, 1, 1]], "")
    _, out, _ = run("mask", "padding([1, 2])", "--queries", "2", "--json")
    assert json.loads(out) == [[[1, 0], [1, 0]], [[1, 1], [1, 1]]]


@pytest.mark.parametrize("lang", CODES)
@pytest.mark.parametrize("width", [60, 100])
def test_a_large_mask_fits_the_terminal(run, lang, width):
    code, out, _ = run("mask", "causal", "--queries", "500", "--lang", lang, COLUMNS=width)
    assert code == 0
    assert max(map(cell_len, out.splitlines())) <= width
    assert "▣" in out
    per_mark = {60: "18 × 18", 100: "11 × 11"}[width]
    assert per_mark in out


@pytest.mark.parametrize("lang", CODES)
def test_a_wrong_expression_is_one_line(run, lang):
    code, out, err = run("mask", "cauzal & window(3)", "--lang", lang)
    assert (code, out) == (2, "")
    assert err.startswith("glassformer: ") and err.count("\n") == 1
    assert "'cauzal'" in err and "prefix(4)" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["documents([0, 1])", "--queries", "3"], "L=3, S=2"),
        (["prefix(-3)"], "got -3"),
        (["padding([1, 2]) & padding([1, 2, 3])"], "(3,)"),
        (["causal", "--queries", "100000"], "at most 16,777,216 cells; got 1 × 100000 × 100000"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_drawn(run, words, sentence):
    code, out, err = run("mask", *words)
    assert (code, out) == (2, "")
    assert sentence in err and err.count("\n") == 1
