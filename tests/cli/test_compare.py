"""`glassformer compare`: two traces of two models, head by head."""

import json

import pytest
import torch

from glassformer.analysis import compare
from glassformer.analysis.traced_text import trace_text
from letter_models import letter_model


@pytest.fixture
def files(tmp_path):
    first, second = letter_model("decoder"), letter_model("decoder")
    with torch.no_grad():
        second.decoder.blocks[1].attention.qkv.weight[:8] += 1.0
    traces = []
    for name, model in (("a", first), ("b", second)):
        trace = trace_text(model, "hello", None)
        trace.save(tmp_path / f"{name}.trace")
        traces.append(trace)
    return tmp_path, traces


def test_heads_that_differ_are_marked(run, files):
    folder, (first, second) = files
    code, out, err = run("compare", folder / "a.trace", folder / "b.trace")
    assert (code, err) == (0, "")
    found = compare(first, second)
    site, head, query, distance = found.most_changed(1)[0]
    assert f"{distance:.3f}  {site}, head {head}, query {query} {'hello'[query]}" in out
    plain = json.loads(run("compare", folder / "a.trace", folder / "b.trace", "--json")[1])
    assert plain["sites"]["decoder.0.self"] == [0.0, 0.0]
    assert plain["sites"]["decoder.1.self"] == pytest.approx(
        found.by_head("decoder.1.self").tolist(), abs=1e-6
    )
    assert "第" in run("compare", folder / "a.trace", folder / "b.trace", "--lang", "zh")[1]


@pytest.mark.plain
def test_refusals(run, files):
    folder, _ = files
    trace_text(letter_model("encoder"), "hi", None).save(folder / "c.trace")
    code, out, err = run("compare", folder / "a.trace", folder / "c.trace")
    assert (code, out) == (2, "")
    assert "must share a site of one size" in err
    code, _, err = run("compare", folder / "a.trace", folder / "nowhere.trace")
    assert code == 2 and "is not there" in err
