import pytest
import torch
from rich.cells import cell_len

import glassformer as gf
from glassformer.errors import ShapeError
from glassformer.functional import RowArithmetic
from glassformer.languages import Language
from glassformer.render.terminal.steps import draw_steps
from render.paper import drawn, lines

EN, ZH = Language("en"), Language("zh")
TOKENS = ["The", "cat", "sat"]
DOTS = torch.tensor([12.5, 30.8, 25.1])
V = torch.tensor([[0.1, 0.0], [1.0, 0.2], [0.2, 1.0]])


def row_of(**options):
    return RowArithmetic.of_dots(DOTS, scale=1 / 8, **options)


def test_all_five_steps_in_english():
    assert lines(draw_steps(row_of(v=V), TOKENS, language=EN), 100) == [
        "key  1 q · k  2 ÷ 8  3 mask  4 exp  weight",
        "The     12.5   1.56    1.56   0.10    0.06  █",
        "cat     30.8   3.85    3.85   1.00    0.63  ██████████",
        "sat     25.1   3.14    3.14   0.49    0.31  ████▉",
        "",
        "1 dot product   q · k: how well each key matches the query",
        "2 scaling       divided by √64 = 8, so that wider vectors do not give larger scores",
        "3 mask          nothing is masked here; a masked key would get −∞",
        "4 softmax       exp(score − 3.85), divided by the sum 1.59: the weights sum to 1",
        "5 weighted sum  each value times its weight, summed:",
        "",
        "     0.06 · [0.10  0.00]  The",
        "   + 0.63 · [1.00  0.20]  cat",
        "   + 0.31 · [0.20  1.00]  sat",
        "   =        [0.70  0.43]",
    ]


def test_the_docstring_shows_the_table():
    shown = lines(draw_steps(row_of(), TOKENS, language=EN), 100)[:4]
    assert [line.split("█")[0] for line in drawn(draw_steps.__doc__)] == [
        line.split("█")[0] for line in shown
    ]


def test_chinese_has_the_same_numbers_and_stays_in_line():
    row = row_of(v=V, allowed=torch.tensor([True, True, False]))
    shown = lines(draw_steps(row, ["我", "爱你", "x"], language=ZH), 60)
    assert shown[0].split() == [
        "键",
        "1",
        "q",
        "·",
        "k",
        "2",
        "÷",
        "8",
        "3",
        "掩码",
        "4",
        "exp",
        "权重",
    ]
    assert "被掩蔽的键得到 −∞：这里有 1 个" in "\n".join(shown)
    assert len({cell_len(line[: line.index(".")]) for line in shown[1:4]}) == 1


def test_a_hidden_key_gets_minus_infinity_and_no_term():
    row = row_of(v=V, allowed=torch.tensor([True, True, False]))
    shown = lines(draw_steps(row, TOKENS, language=EN), 100)
    assert shown[3].split() == ["sat", "25.1", "3.14", "−∞", "·", "·"]
    assert "masked keys get −∞: 1 here" in shown[7]
    assert [line.split()[-1] for line in shown[-3:]] == ["The", "cat", "0.18]"]


def test_a_row_where_nothing_is_allowed():
    row = row_of(v=V, allowed=torch.zeros(3, dtype=torch.bool))
    shown = lines(draw_steps(row, TOKENS, language=EN), 100)
    assert "every key is masked: all weights are 0" in "\n".join(shown)
    assert shown[-1].split() == ["=", "[0", "0]"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scale": 1.0}, "multiplied by 1: no scaling"),
        ({"scale": 0.3}, "multiplied by 0.3"),
        ({"scale": -0.5}, "multiplied by -0.5"),
        ({"scale": 50**-0.5}, "divided by √50 = 7.071"),
        ({"softcap": 2.0}, "soft-capped to ±2 by softcap · tanh(x / softcap)"),
        ({"bias": torch.tensor([0.0, 1.0, 0.0])}, "the bias is added; nothing is masked here"),
        ({}, "no values given, so the calculation ends with the weights"),
    ],
)
def test_the_legend_says_what_was_done(options, sentence):
    row = RowArithmetic.of_dots(DOTS, **{"scale": 1 / 8, **options})
    assert sentence in "\n".join(lines(draw_steps(row, TOKENS, language=EN), 140))


def test_many_keys_and_wide_values_are_shortened():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, 13, 7).unbind(0)
    row = gf.row_arithmetic(q, k, v, query=11)
    tokens = [f"token{i}" for i in range(12)] + ["averyveryverylongtoken"]
    shown = lines(draw_steps(row, tokens, language=EN), 60)
    assert max(map(cell_len, shown)) <= 60
    assert sum(line.strip().startswith(("0.", "+ 0.")) for line in shown) == 8
    assert "5 more keys with total weight" in "\n".join(shown)
    assert shown[-1].endswith("…]")
    assert any("averyveryverylo…" in line for line in shown)


def test_of_very_many_keys_the_strongest_are_listed():
    torch.manual_seed(0)
    dots = torch.randn(1000)
    row = RowArithmetic.of_dots(dots)
    shown = lines(draw_steps(row, [f"t{i}" for i in range(1000)], language=EN), 80)
    listed = [int(line.split()[0][1:]) for line in shown[1:41]]
    assert listed == sorted(row.weights.topk(40).indices.tolist())
    rest = 1 - float(row.weights.topk(40).values.sum())
    assert shown[41] == f"… and 960 more keys with total weight {rest:.2f}"


def test_one_token_for_each_key():
    with pytest.raises(ShapeError, match="got 2 tokens for 3 keys"):
        draw_steps(row_of(), TOKENS[:2], language=EN)
