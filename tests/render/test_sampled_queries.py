"""Long texts: some queries stand for all, and every number about them is exact."""

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.languages import Language
from glassformer.render import sampled_queries as module
from glassformer.render.focus import choose_focus
from glassformer.render.sampled_queries import count_queries, sample_queries, select_evenly
from glassformer.render.terminal.picture import draw_picture
from glassformer.render.tokens import is_cross, token_names
from glassformer.tracing import Run, Trace, TracedText, record
from render.page_traces import decoder
from render.paper import lines


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mask": gf.Causal()},
        {"mask": gf.Causal() & gf.Padding([40, 31])},
        {"mask": ~gf.Explicit(torch.rand(37, 41) > 0.8), "softcap": 3.0},
        {"bias": gf.ALiBi.of_heads(4) + gf.RelativeBuckets(torch.randn(8, 4), max_distance=9)},
    ],
)
def test_the_rows_that_stay_are_the_same(options) -> None:
    q, k, v = torch.randn(2, 4, 37, 6), torch.randn(2, 2, 41, 6), torch.randn(2, 2, 41, 5)
    whole = record(q, k, v, out=gf.attention(q, k, v, **options), **options)
    some = select_evenly(whole, 19)
    assert some.rows[0] == 0 and some.rows[-1] == 36 and len(some.rows) == 19
    rows = list(some.rows)
    for sequence in range(2):
        expected = whole.weights(sequence=sequence)[:, rows]
        assert_close(some.weights(sequence=sequence), expected, 1e-6)
        for name in ("entropy", "peak", "distance"):
            expected = getattr(whole, name)(sequence=sequence)[:, rows]
            assert_close(getattr(some, name)(sequence=sequence), expected, 1e-4)
    assert_same(some.out, whole.out[:, :, rows])
    again = select_evenly(some, 16)
    assert again.n_rows == 37 and set(again.rows) <= set(rows)
    assert_close(again.weights(), whole.weights()[:, list(again.rows)], 1e-6)


def test_a_short_text_stays_as_it_is() -> None:
    trace = decoder(6)
    assert sample_queries(trace) is trace
    assert count_queries(trace["decoder.0.self"]) == (6, 6)


def test_a_long_one_is_shown_in_part(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_CELLS", 2 * 3 * 500 * 40)
    words = [f"t{i}" for i in range(500)]
    trace = decoder(500, words=words)
    part = sample_queries(trace)
    site, head, *_ = choose_focus(part, site="decoder.1.self", head=2)
    assert count_queries(site) == (40, 500) and not is_cross(site)
    queries, keys = token_names(part, site)
    assert queries == [f"t{row}" for row in site.rows] and keys == words
    out = "\n".join(lines(draw_picture(part, site, head, width=80, language=Language("en"))))
    assert "decoder.1.self, head 2: 500 queries by 500 keys" in out
    assert "computed on 40 of 500 queries, evenly spaced" in " ".join(out.split())
    top = trace["decoder.1.self"].top(2, 3)
    best = f"{float(top.weights[499, 0]):.2f}"
    (last,) = (line for line in out.splitlines() if line.startswith("499 "))
    assert last.split()[1] == "t499" and last.split()[2].startswith(best[:3])
    assert last.split()[3] == f"t{int(top.indices[499, 0])}"


def test_places_where_there_is_no_text(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_CELLS", 1000)
    q, k, v = torch.randn(3, 2, 1, 200, 4).unbind(0)
    trace = Trace(
        [Run({"attention": record(q, k, v)}, {"other": TracedText(torch.arange(1)[None], [])})]
    )
    part = sample_queries(trace)
    assert token_names(part, part["attention"], 1)[0] == [str(n) for n in part["attention"].rows]
    assert set(trace.run.texts) == {"other"}  # the trace itself is left alone
