"""The arithmetic of a row and a cell: the same numbers as attention itself, written out."""

import json
import math

import pytest
import torch

import glassformer as gf
from closeness import assert_close
from glassformer.functional import reference
from glassformer.functional.arithmetic import RowArithmetic

B, H, K, L, S, D, E = 2, 6, 3, 5, 7, 11, 13


def operands() -> tuple[torch.Tensor, ...]:
    shapes = ((B, H, L, D), (B, K, S, D), (B, K, S, E))
    return tuple(torch.randn(*shape) for shape in shapes)


OPTIONS = [
    {},
    {"mask": gf.Causal()},
    {"mask": gf.Causal() & gf.Padding([7, 3]), "softcap": 1.3},
    {"bias": gf.ALiBi.of_heads(H), "scale": 0.7},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_cell_is_that_of_attention(options: dict) -> None:
    q, k, v = operands()
    exact = [t.double() for t in (q, k, v)]
    weights = gf.attention_weights(*exact[:2], **options)
    out = reference.attention(*exact, **options)
    for b, h, i, j in ((0, 0, 0, 0), (1, 5, 4, 6), (1, 2, 3, 2), (0, 3, 1, 3)):
        cell = gf.cell_arithmetic(q, k, v, batch=b, head=h, query=i, key=j, **options)
        assert math.isclose(sum(cell.products), cell.dot, abs_tol=1e-12)
        assert cell.q == q[b, h, i].double().tolist()
        assert cell.k == k[b, h // 2, j].double().tolist()
        assert math.isclose(cell.dot * cell.scale, cell.scaled, abs_tol=1e-12)
        assert math.isclose(cell.weight, weights[b, h, i, j].item(), abs_tol=1e-6)
        assert math.isclose(cell.exp / cell.total, cell.weight, abs_tol=1e-12)
        assert cell.contribution == pytest.approx([cell.weight * x for x in cell.v], abs=1e-12)
        assert cell.out == pytest.approx(out[b, h, i].tolist(), abs=1e-6)
        row = gf.row_arithmetic(q, k, v, batch=b, head=h, query=i, **options)
        assert_close(row.weights, weights[b, h, i], 1e-6)
        assert_close(row.out, out[b, h, i], 1e-6)


def test_the_worked_example() -> None:
    row = RowArithmetic.of_dots(torch.tensor([12.5, 30.8, 25.1]), scale=1 / 8)
    assert [round(x, 2) for x in row.scaled.tolist()] == [1.56, 3.85, 3.14]
    assert [round(x, 2) for x in row.weights.tolist()] == [0.06, 0.63, 0.31]
    assert math.isclose(row.total, sum(row.exps.tolist()))


def test_the_masked_example() -> None:
    dots = torch.tensor([[10.0, 8, 5], [9, 12, 11], [4, 7, 9]])
    rows = [
        RowArithmetic.of_dots(d, allowed=gf.Causal().dense(3)[0, 0, i]) for i, d in enumerate(dots)
    ]
    got = torch.stack([row.weights for row in rows])
    expected = dots.double().masked_fill(~gf.Causal().dense(3)[0, 0], -math.inf).softmax(-1)
    assert_close(got, expected, 1e-15)
    assert rows[0].weights.tolist() == [1, 0, 0]


def test_a_row_with_nothing_allowed_and_a_nan() -> None:
    empty = RowArithmetic.of_dots(torch.ones(3), allowed=torch.zeros(3).bool(), v=torch.ones(3, 2))
    assert empty.weights.tolist() == [0, 0, 0]
    assert empty.out.tolist() == [0, 0]
    assert RowArithmetic.of_dots(torch.tensor([1.0, math.nan])).weights.isnan().all()
    assert len(RowArithmetic.of_dots(torch.empty(0)).weights) == 0


def test_it_is_written_out() -> None:
    q = torch.tensor([[[[1.0, 2.0]]]])
    k = torch.tensor([[[[3.0, 4.0], [0.0, 1.0]]]])
    v = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    cell = gf.cell_arithmetic(
        q, k, v, query=0, key=0, scale=0.5, softcap=10.0, bias=torch.ones(1, 2)
    )
    text = str(cell)
    assert "q · k     = 1·3 + 2·4" in text
    assert "· scale   = 11 · 0.5 = 5.5" in text
    assert "softcap   = 10 · tanh(5.5 / 10) = 5.00" in text
    assert "+ bias    = 5.0052 + 1 = 6.0052" in text
    hidden = gf.cell_arithmetic(q, k, v, query=0, key=1, mask=~gf.Window(right=0, offset=0))
    assert "mask      = hidden" not in str(hidden)
    hidden = gf.cell_arithmetic(q, k, v, query=0, key=1, mask=gf.Window(right=0, offset=0))
    assert "mask      = hidden" in str(hidden)
    assert hidden.weight == 0


def test_it_is_data() -> None:
    q, k, v = operands()
    cell = gf.cell_arithmetic(q, k, v, query=1, key=2)
    assert json.loads(json.dumps(cell.as_dict()))["weight"] == cell.weight
    row = gf.row_arithmetic(q, k, v, query=1)
    assert json.loads(json.dumps(row.as_dict()))["weights"] == row.weights.tolist()
