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


def test_what_differs_first(run, tmp_path):
    first, second = letter_model("decoder"), letter_model("decoder")
    with torch.no_grad():
        second.decoder.blocks[1].attention.out.weight.mul_(2.0)
    for name, model in (("a", first), ("b", second)):
        trace_text(model, "hello you", None, residual=True).save(tmp_path / f"{name}.trace")
    files = tmp_path / "a.trace", tmp_path / "b.trace"
    code, out, err = run("compare", *files, "--bisect")
    assert (code, err) == (0, "")
    assert "decoder.1.self writes to the residual stream differs first" in " ".join(out.split())
    plain = json.loads(run("compare", *files, "--bisect", "--json")[1])
    assert plain["origin"]["name"] == "decoder.1.self"
    assert plain["origin"]["operands"] == ["written"]
    assert [line["name"] for line in plain["layers"]] == ["decoder", "decoder.0", "decoder.1"]
    assert "写入残差流" in run("compare", *files, "--bisect", "--lang", "zh")[1]
    code, out, _ = run("compare", files[0], files[0], "--bisect")
    assert code == 0 and "rounding in float32" in " ".join(out.split())
