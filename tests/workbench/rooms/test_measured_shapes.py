"""Shapes of a model that cannot be drawn: modules and sites as one run shows them."""

import pytest

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.measured_shapes import measure_shapes
from glassformer.workbench.wire.shapes import MeasuredShapesAnswer, MeasuredShapesRequest
from workbench.foreign_folder import save_foreign


def ask(memory, model, text="the cat sat on"):
    found = measure_shapes(MeasuredShapesRequest(model=model, text=text), memory, lambda _: None)
    MeasuredShapesAnswer.model_validate(found)
    return found


def test_a_model_of_transformers(tmp_path):
    pytest.importorskip("transformers")
    from transformers import AutoModelForCausalLM

    save_foreign(tmp_path)
    memory = Memory()
    memory.locate({"neox": str(tmp_path)})
    found = ask(memory, "neox")
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert found["parameters"] == sum(each.numel() for each in model.parameters())
    shape = [1, 3, 4, 8]
    assert [each["name"] for each in found["sites"]] == ["decoder.0.self", "decoder.1.self"]
    assert all(each["q"] == each["k"] == each["v"] == shape for each in found["sites"])
    modules = {each["name"]: each for each in found["modules"]}
    layers = modules["gpt_neox.layers.0 … 1"]
    assert (layers["kind"], layers["count"], layers["depth"]) == ("GPTNeoXLayer", 2, 1)
    blocks = model.gpt_neox.layers
    assert layers["parameters"] == sum(each.numel() for each in blocks.parameters())
    one = modules["gpt_neox.layers.0.mlp"]
    assert one["parameters"] == sum(each.numel() for each in blocks[0].mlp.parameters())
    assert (
        sum(each["parameters"] for each in found["modules"] if each["depth"] == 0)
        == (found["parameters"])
    )
    assert "gpt-2" in found["presets"]


def test_a_saved_trace_has_sites_alone(tmp_path):
    trace = trace_text(gf.load("writer"), "And God said", None, None)
    trace.save(tmp_path / "god.trace")
    memory = Memory()
    memory.locate({"god.trace": str(tmp_path / "god.trace")})
    found = ask(memory, "god.trace", "")
    assert found["parameters"] is None and found["modules"] == []
    first = gf.Trace.load(tmp_path / "god.trace")[found["sites"][0]["name"]]
    assert found["sites"][0]["q"] == list(first.q.shape)
