"""What a trace does by itself: show, figure, page, and its place in a notebook."""

import html
import re
import subprocess
import sys

import pytest
import torch

import glassformer as gf
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.page import inline
from glassformer.render.page.document import page_html
from glassformer.tracing import Run, Trace, record
from render.page_numbers import page_data
from render.page_traces import decoder, translator


@pytest.fixture(autouse=True)
def english(monkeypatch):
    monkeypatch.setenv("GLASSFORMER_LANG", "en")
    monkeypatch.setenv("COLUMNS", "80")


def framed(trace: Trace) -> str:
    """The page that a frame carries."""
    found = re.fullmatch(r'<iframe srcdoc="([^"]*)" [^<>]*></iframe>', trace._repr_html_())
    assert found is not None
    return html.unescape(found[1])


def test_show_prints_what_look_shows(capsys, monkeypatch) -> None:
    trace = decoder(6)
    trace.show(site="decoder.1.self", head=2)
    out = capsys.readouterr().out
    assert "decoder.1.self, head 2: 6 queries by 6 keys" in out
    for weight in trace["decoder.1.self"].weights(head=2).flatten().tolist():
        assert weight < 0.01 or f"{weight:.2f}" in out
    assert "was not recorded" in out
    monkeypatch.setenv("GLASSFORMER_LANG", "zh")
    trace.show()
    assert "每个词元最关注什么" in capsys.readouterr().out


def test_a_run_and_a_sequence_are_chosen(capsys) -> None:
    trace = translator()
    for run, (L, S) in ((0, (4, 6)), (1, (5, 7)), (-1, (5, 7)), (None, (5, 7))):
        trace.show(run=run, site="decoder.0.cross", sequence=1)
        assert f"{L} queries by {S} keys" in capsys.readouterr().out
    weights = trace.runs[0].sites["decoder.0.cross"].weights(head=0, sequence=1)
    trace.show(run=0, site="decoder.0.cross", head=0, sequence=1)
    out = capsys.readouterr().out
    assert all(f"{float(weights[0, key]):.2f}" in out for key in range(3))


def test_figures_and_pages_are_written(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    trace = translator()
    for kind in ("head", "heads", "alignment", "entropy"):
        trace.figure(tmp_path / f"{kind}.png", kind=kind, run=0)
    trace.page(tmp_path / "all.html")
    trace.page(str(tmp_path / "one.html"), run=0)
    pages = [(tmp_path / f"{n}.html").read_text("utf-8") for n in ("all", "one")]
    assert [len(page_data(page)["runs"]) for page in pages] == [2, 1]
    assert len(list(tmp_path.iterdir())) == 6


def test_a_notebook_gets_the_page_in_a_frame() -> None:
    trace = decoder(6)
    assert framed(trace) == page_html(trace, Language("en"))
    found = trace._repr_html_()
    assert 'sandbox="allow-scripts"' in found and 'height="640"' in found
    assert "<" not in found.removeprefix("<iframe").removesuffix("</iframe>")


def test_a_trace_that_still_grows_has_a_page() -> None:
    from letter_models import letter_model

    model = letter_model("decoder")
    with gf.watch(model) as trace:
        assert "nothing" in repr(trace) and "needs a trace" in trace._repr_html_()
        model(torch.arange(5)[None])
        assert len(page_data(framed(trace))["runs"]) == 1


def test_without_a_page_there_is_a_sentence_and_the_sites(monkeypatch) -> None:
    long = decoder(2049, layers=1, heads=1, dim=2)._repr_html_()
    assert "up to 2048 tokens; got 2049 at decoder.0.self" in long
    assert "<bdi>decoder.0.self</bdi></td><td>1 × 1 × 2049 × 2049" in long
    monkeypatch.setattr(inline, "_MOST_BYTES", 1000)
    assert "too large for a notebook" in decoder(6)._repr_html_()
    assert "needs a trace with at least one site" in Trace()._repr_html_()


def test_nothing_in_a_notebook_raises_or_runs(monkeypatch) -> None:
    q, k, v = torch.randn(3, 1, 1, 3, 4).unbind(0)
    name = "<script>alert(1)</script>"
    trace = Trace([Run({name: record(q, k, v, name=name)})])
    assert "<script>" not in trace._repr_html_()

    def broken(*_args):
        raise RuntimeError("<b>out of memory</b>")

    monkeypatch.setattr(inline, "page_html", broken)
    found = trace._repr_html_()
    assert "RuntimeError: &lt;b&gt;out of memory" in found
    assert "<script>" not in found and "&lt;script&gt;" in found


def test_drawing_is_imported_when_something_is_drawn() -> None:
    code = (
        "import sys, glassformer as gf; t = gf.Trace();"
        "assert 'rich' not in sys.modules and 'glassformer.render' not in sys.modules;"
        "t._repr_html_(); assert 'glassformer.render' in sys.modules;"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.plain
def test_refusals(tmp_path) -> None:
    trace = translator()
    for call, sentence in (
        (lambda: trace.show(site="decoder.5.self"), r"A site must be one of.*'decoder.5.self'"),
        (lambda: trace.show(head=9), r"has heads 0 … 1; got head=9"),
        (lambda: trace.show(sequence=9), r"has sequences 0 … 1; got sequence=9"),
        (lambda: trace.show(run=2), r"This trace has runs 0 … 1; got run=2"),
        (lambda: Trace().show(run=0), r"This trace has no runs; got run=0"),
        (lambda: Trace().show(), r"nothing has passed through the model yet"),
        (lambda: trace.page(tmp_path / "a.txt"), r"must be an .html file; got 'a.txt'"),
        (lambda: trace.figure(tmp_path / "a.png", kind="x"), r"one of head.*got 'x'"),
    ):
        with pytest.raises(TraceError, match=sentence):
            call()
