"""The page: small, whole, safe to open, and as exact in a browser as it is here."""

import base64
import json

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.page import document, template
from glassformer.render.page.document import draw_page, page_html
from glassformer.render.page.texts import TRACE_KEYS
from glassformer.tracing import Run, Trace
from render.page_numbers import FILE, numbers, page_data, unpacked
from render.page_traces import WORDS, decoder

ENGLISH = Language("en")


def test_a_page_is_one_file(tmp_path) -> None:
    draw_page(decoder(6), tmp_path / "a.html", language=Language("zh"))
    html = (tmp_path / "a.html").read_text("utf-8")
    assert html.startswith("<!doctype html>") and html.rstrip().endswith("</html>")
    assert "@@" not in html
    data = page_data(html)
    assert data["language"] == "zh"
    assert data["model"]["config"]["family"] == "decoder"
    (site, _) = data["runs"][0]["sites"]
    assert data["runs"][0]["names"][site["keys"][0]] == WORDS
    assert site["queries"] == site["keys"]  # tokens are written once
    assert {code: set(texts) for code, texts in data["languages"].items()} == {
        "en": set(TRACE_KEYS),
        "zh": set(TRACE_KEYS),
    }
    assert list(tmp_path.iterdir()) == [tmp_path / "a.html"]


def test_nothing_is_asked_of_the_network() -> None:
    built = "".join(template._template())
    policy = built.split('Policy" content="')[1].split('"')[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy
    assert "worker-src blob:;" in policy  # the engine's thread is a part of the page
    markup = built.split("<script>")[0]
    assert "src=" not in markup and "href=" not in markup and "@import" not in markup


def test_twelve_layers_of_twelve_heads() -> None:
    trace = decoder(128, layers=12, heads=12, dim=64)
    size = len(page_html(trace, ENGLISH).encode())
    assert size <= 10_000_000
    # Operands grow with the text, and nothing else does: four times as many for 512 tokens.
    operands = sum(document._size(site) for site in trace)
    assert size - operands < 300_000
    assert 4 * operands + 4 * (size - operands) <= 40_000_000


def test_operands_are_kept_to_half_a_step() -> None:
    trace = decoder(6, dim=7)
    packed = page_data(page_html(trace, ENGLISH), "site-0-0")
    for name in "qkv":
        operand = getattr(trace["decoder.0.self"], name)
        largest = operand.abs().amax(-1, keepdim=True)
        error = (unpacked(packed[name], operand.shape) - operand).abs() / largest
        assert error.max() <= 1.6e-5


def test_a_model_may_tell_anything() -> None:
    trace = decoder(3)
    trace.model = {"dtype": torch.float16, "limit": float("inf"), "dim": 3}
    data = page_data(page_html(trace, ENGLISH))
    assert data["model"] == {"dtype": "torch.float16", "limit": "Infinity", "dim": 3}


def test_runs_that_passed_nothing_are_left_out() -> None:
    trace = decoder(3)
    trace.runs.insert(0, Run())
    assert len(page_data(page_html(trace, ENGLISH))["runs"]) == 1


def test_what_is_no_number_stays_visible() -> None:
    trace = decoder(3)
    trace["decoder.0.self"].q[0, 1, 2, 0] = torch.inf
    trace["decoder.0.self"].q[0, 0, 0] = 0.0
    packed = page_data(page_html(trace, ENGLISH), "site-0-0")["q"]
    steps = np.frombuffer(base64.b64decode(packed["steps"]), "<f4").reshape(3, 3)
    assert np.isnan(steps[1, 2]) and np.isfinite(np.delete(steps.flatten(), 5)).all()
    assert steps[0, 0] == 0


def test_tensors_that_layers_share_are_written_once() -> None:
    trace = decoder(6)
    shared = gf.Explicit(torch.rand(6, 6) > 0.5)
    for site in trace:
        site.mask = shared
    html = page_html(trace, ENGLISH)
    data = page_data(html)
    assert len(page_data(html, "tensors")) == 1
    assert [site["mask"] for site in data["runs"][0]["sites"]] == [
        {"kind": "Explicit", "tensor": 0}
    ] * 2


def test_texts_cannot_leave_their_place(tmp_path) -> None:
    wicked = ["</script><script>alert(1)</script>", "<!--", "\u2028\u2029", "\ud800", "@@script@@"]
    wicked.append("a</title><script>")
    trace = decoder(6, words=wicked)
    html = page_html(trace, ENGLISH)
    draw_page(trace, tmp_path / "a.html", language=ENGLISH)
    assert (tmp_path / "a.html").read_text("utf-8") == html
    assert wicked in page_data(html)["runs"][0]["names"]
    begin = html.index('id="page">')
    inside = html[begin : html.index("</script>", begin)]
    assert inside.isascii() and "<" not in inside
    elements = 1 + len(trace)  # the tensors, and the operands of each site
    assert html.count("</script>") == "".join(template._template()).count("</script>") + elements
    head = html[: html.index("<body>")]
    assert "a&lt;/title&gt;&lt;script&gt;" in head and head.count("<script") == 0


def test_the_numbers_of_the_web_tests_are_these() -> None:
    committed, now = json.loads(FILE.read_text()), numbers()
    for numbered in (committed, now):
        for site in numbered["page"]["runs"][0]["sites"]:
            site["sharpness"] = None  # compared below, with a tolerance
    assert committed["page"]["runs"] == now["page"]["runs"]
    assert committed["tensors"] == now["tensors"] and committed["packed"] == now["packed"]
    for name, derived in now["sites"].items():
        for field in ("weights", "visible", "entropy", "peak", "distance", "received", "sharpness"):
            then, found = (
                np.array(each, dtype=float)
                for each in (committed["sites"][name][field], derived[field])
            )
            assert then == pytest.approx(found, abs=1e-6, nan_ok=True)


def test_the_page_is_painted_before_its_operands_are_read() -> None:
    html = page_html(decoder(6), ENGLISH)
    script = html.index("<script>")
    assert html.index('id="page"') < script
    assert all(script < html.index(f'id="{each}"') for each in ("tensors", "site-0-0", "site-0-1"))
    assert "int16" in page_data(html, "site-0-0")["q"] and "int16" not in str(page_data(html))


@pytest.mark.plain
def test_refusals(tmp_path, monkeypatch) -> None:
    with pytest.raises(TraceError, match=r"must be an .html file; got 'a.htm'"):
        draw_page(decoder(3), tmp_path / "a.htm", language=ENGLISH)
    with pytest.raises(TraceError, match=r"at least one site; got none"):
        page_html(Trace(), ENGLISH)
    with pytest.raises(TraceError, match=r"up to 2048 tokens; got 2049 at decoder.0.self"):
        page_html(decoder(2049, layers=1, heads=1, dim=2), ENGLISH)
    monkeypatch.setattr(document, "MOST_BYTES", 3_000_000)
    with pytest.raises(TraceError, match=r"up to 3 MB; this trace of 2 sites needs 4 MB"):
        page_html(decoder(600, layers=2, heads=2, dim=205), ENGLISH)
    (tmp_path / "file").touch()
    with pytest.raises(TraceError, match=r"could not be written"):
        draw_page(decoder(3), tmp_path / "file" / "a.html", language=ENGLISH)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
