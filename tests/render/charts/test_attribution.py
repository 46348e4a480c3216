"""Contribution bars as values: whatever is left out, the bars add up to the logit."""

import pytest
import torch

import glassformer as gf
from glassformer.languages import Language
from glassformer.render.charts.attribution import chart_of_attribution

ENGLISH = Language("en")


@pytest.fixture(scope="module")
def trace() -> gf.Trace:
    model = gf.load("writer")
    with torch.no_grad(), gf.watch(model, residual=True) as found:
        model(torch.tensor([model.tokenizer.encode("And God said unto")]))
    return found


@pytest.mark.parametrize("order", ["size", "layer"])
@pytest.mark.parametrize("top", [3, 1000])
def test_bars_add_up_to_the_logit(trace, top, order) -> None:
    found = gf.attribute(trace, " him", against=" me", by="head")
    (panel,) = chart_of_attribution(found, ENGLISH, top=top, order=order).panels
    values = panel.series[0].values
    assert sum(values) == pytest.approx(found.logit, abs=5e-3)
    assert len(panel.names) == len(values) == min(top, len(found.shares)) + panel.n_rest
    assert panel.is_signed and panel.names[-1] == "rounding"
    assert panel.n_rest == (2 if top == 3 else 1)


def test_order(trace) -> None:
    found = gf.attribute(trace, " him", by="head")
    by_size, by_layer = (
        chart_of_attribution(found, ENGLISH, top=6, order=order).panels[0]
        for order in ("size", "layer")
    )
    parts = by_size.series[0].values[:6]
    assert list(parts) == sorted(parts, key=lambda value: -abs(value))
    assert set(by_layer.names) == set(by_size.names)
    order = [share.name for share in found.shares]
    places = [order.index(name) for name in by_layer.names[:6]]
    assert places == sorted(places, reverse=True)


def test_what_is_frozen_is_named_in_both_languages() -> None:
    model = gf.load("reader")
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(torch.tensor([model.tokenizer.encode("The cat sat.")]))
    found = gf.attribute(trace, "cat", by="head", position=2)
    assert found.frozen
    english, chinese = (chart_of_attribution(found, Language(c)).caption for c in ("en", "zh"))
    assert "attention weights" in english and "注意力权重" in chinese
    after = chinese.partition("冻结在记录值的量：")[2]
    assert after and not any(each in after for each in found.frozen)
