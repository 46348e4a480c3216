"""Before and after an intervention, as values."""

import pytest
import torch

import glassformer as gf
from glassformer.analysis import compare
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.chart import Bars
from glassformer.render.charts.change import _pool, chart_of_change

ENGLISH = Language("en")


@pytest.fixture(scope="module")
def pair():
    model = gf.load("writer")
    tokens = torch.tensor([model.tokenizer.encode("And God said unto")])
    with torch.no_grad(), gf.watch(model, residual=True) as before:
        model(tokens)
    with torch.no_grad(), gf.change(model, gf.Ablate("decoder.1.mlp"), residual=True) as after:
        model(tokens)
    return before, after


def test_probabilities_and_attention_of_both_runs(pair) -> None:
    before, after = pair
    chart = chart_of_change(compare(before, after), ENGLISH, site="decoder.3.self", head=2, top=4)
    tokens, first, second, difference = chart.panels
    assert isinstance(tokens, Bars) and [s.name for s in tokens.series] == ["before", "after"]
    for series, trace in zip(tokens.series, pair, strict=True):
        shares = trace.logits()[0, -1].softmax(-1)
        assert max(series.values) == pytest.approx(float(shares.max()), rel=1e-3)
    a, b = (trace["decoder.3.self"].weights(2) for trace in pair)
    assert torch.allclose(torch.tensor(first.values), a, atol=1e-4)
    assert torch.allclose(torch.tensor(second.values), b, atol=1e-4)
    assert torch.allclose(torch.tensor(difference.values), b - a, atol=1e-4)
    assert difference.is_signed and first.most == second.most
    assert "under ablate(decoder.1.mlp" in chart.title


def test_the_head_that_changed_most_is_drawn(pair) -> None:
    found = compare(*pair)
    best = max((float(v), n, h) for n in found.sites for h, v in enumerate(found.by_head(n)))
    assert f"{best[1]}, head {best[2]}" in chart_of_change(found, ENGLISH).panels[1].title


def test_without_streams_only_attention_is_drawn(pair) -> None:
    from dataclasses import replace

    bare = [gf.Trace([replace(t.run, streams={})], t.model) for t in pair]
    assert len(chart_of_change(compare(*bare), ENGLISH).panels) == 3


@pytest.mark.plain
def test_mistakes(pair) -> None:
    found = compare(*pair)
    with pytest.raises(TraceError, match=r"they share decoder\.0\.self.*got 'x'"):
        chart_of_change(found, ENGLISH, site="x")
    with pytest.raises(TraceError, match=r"head must be one of 0, 1, 2, 3; got head=9"):
        chart_of_change(found, ENGLISH, head=9)
    with pytest.raises(TraceError, match="There are 4 positions; got position=4"):
        chart_of_change(found, ENGLISH, position=4)


def test_blocks_keep_the_largest_change_with_its_sign() -> None:
    values = torch.zeros(200, 97)
    values[150, 60], values[0, 0] = -3.0, 1.0
    pooled = _pool(values)
    assert max(pooled.shape) <= 96
    assert pooled.min() == -3.0 and pooled.max() == 1.0 and int((pooled != 0).sum()) == 2
