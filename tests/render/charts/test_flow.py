"""The flow of the residual stream as values."""

import pytest
import torch

import glassformer as gf
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.charts.flow import chart_of_flow

ENGLISH = Language("en")


def test_norms_of_what_each_part_adds() -> None:
    model = gf.load("writer")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.tensor([model.tokenizer.encode("And God said")]))
    norms, shares = chart_of_flow(trace, ENGLISH).panels
    stream = trace.residual()
    assert norms.row_names == tuple(part.name for part in reversed(stream.parts))
    for i, part in enumerate(reversed(stream.parts)):
        before = stream.after(stream.borders[len(stream.parts) - 1 - i])[0].norm(dim=-1)
        size = part.value[0].norm(dim=-1)
        assert list(norms.values[i]) == pytest.approx(size.tolist(), rel=1e-3)
        assert list(shares.values[i]) == pytest.approx((size / (size + before)).tolist(), rel=1e-3)


def test_a_few_huge_cells_do_not_hide_the_others() -> None:
    from glassformer.render.charts.flow import _end_of_scale

    values = torch.ones(10, 20)
    assert _end_of_scale(values) is None
    values[0, 0] = 1000.0
    assert _end_of_scale(values) == 1.0


def test_it_needs_the_stream() -> None:
    model = gf.load("writer")
    with torch.no_grad(), gf.watch(model) as trace:
        model(torch.tensor([model.tokenizer.encode("And")]))
    with pytest.raises(TraceError, match="residual=True"):
        chart_of_flow(trace, ENGLISH)
