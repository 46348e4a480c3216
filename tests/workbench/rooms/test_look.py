"""A run as it is first shown: equal to what `glassformer look` draws, for every kind of source."""

import json
from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.errors import CheckpointError, ConfigError, TraceError
from glassformer.render.page.document import describe_trace
from glassformer.render.page.sites import Tensors, pack_site
from glassformer.workbench import foreign_models
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.look import describe_run, open_site
from glassformer.workbench.wire.requests import ReadingRequest
from glassformer.workbench.wire.runs import RunAnswer, RunRequest, SiteAnswer, SiteRequest
from workbench.foreign_folder import save_foreign

READINGS: dict[str, dict[str, Any]] = {
    "translation": {"model": "translator", "text": "The cat sat on the mat.", "to": "fr"},
    "continuation": {"model": "writer", "text": "And God said unto Moses, Go"},
    "gaps": {"model": "reader", "text": "The king sat upon his [MASK]."},
}


def ignore(_: float) -> None:
    pass


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


@pytest.mark.parametrize("kind", READINGS)
def test_a_run_is_what_look_draws(memory, kind):
    reading = READINGS[kind]
    found = describe_run(RunRequest(**reading), memory, ignore)
    RunAnswer.model_validate(found)
    trace = trace_text(gf.load(reading["model"]), reading["text"], to=reading.get("to"))
    assert found["page"] == describe_trace(trace, Tensors())
    opening = found["page"]["opening"]["site"]
    assert found["opened"] == open_site(SiteRequest(**reading, site=opening), memory, ignore)
    assert found["outcome"]["kind"] == kind
    shown = found["insight"]
    row = trace[shown["site"]].weights(head=shown["head"], rows=[shown["query"]])[0]
    assert shown["weight"] == pytest.approx(float(row[shown["key"]]), abs=1e-5)


def test_outcomes_are_those_of_the_commands(memory):
    found = {
        kind: describe_run(RunRequest(**reading), memory, ignore)["outcome"]
        for kind, reading in READINGS.items()
    }
    model = gf.load("translator")
    text = READINGS["translation"]["text"]
    assert found["translation"]["text"] == gf.translate(model, text, to="fr")
    writer = gf.load("writer")
    tokens = writer.tokenizer.encode(READINGS["continuation"]["text"])
    best = writer(torch.tensor([tokens]))[0, -1].softmax(-1).topk(10)
    (guesses,) = found["continuation"]["guesses"]
    assert [each["token"] for each in guesses] == best.indices.tolist()
    assert [each["probability"] for each in guesses] == pytest.approx(
        best.values.tolist(), rel=1e-4
    )
    filled = gf.fill(gf.load("reader"), READINGS["gaps"]["text"])
    (guesses,) = found["gaps"]["guesses"]
    assert guesses[0]["piece"].strip("␣") in str(filled)


def test_the_residual_stream_is_added_without_writing_anew(memory):
    asked = ReadingRequest(**READINGS["translation"], change="ablate(decoder.1.cross, head=1)")
    first = memory.glance(asked, ignore)
    assert not first.trace.run.streams
    whole = memory.reading(asked, ignore)
    assert whole.trace.run.streams and memory.glance(asked, ignore) is whole
    for before, after in zip(first.trace, whole.trace, strict=True):
        assert torch.equal(before.q, after.q) and torch.equal(before.out, after.out)
    texts = [each.trace.run.texts["tokens"] for each in (first, whole)]
    assert torch.equal(texts[0].tokens, texts[1].tokens)
    assert texts[0].following == texts[1].following


def test_the_operands_of_a_site(memory):
    asked = SiteRequest(**READINGS["continuation"], site=3)
    found = open_site(asked, memory, ignore)
    SiteAnswer.model_validate(found)
    site = list(trace_text(gf.load("writer"), READINGS["continuation"]["text"]))[3]
    assert found == pack_site(site) and found["difference"]["recorded"] < 1e-5
    with pytest.raises(TraceError, match=r"sites 0 … 4; got site=7"):
        open_site(SiteRequest(**READINGS["continuation"], site=7), memory, ignore)


def test_a_saved_trace_is_shown_as_it_is(memory, tmp_path):
    trace = trace_text(gf.load("translator"), "The cat sat.", to="fr")
    trace.save(tmp_path / "cat.trace")
    memory.locate({"cat.trace": str(tmp_path / "cat.trace")})
    found = describe_run(RunRequest(model="cat.trace", text=""), memory, ignore)
    RunAnswer.model_validate(found)
    assert found["page"] == describe_trace(gf.Trace.load(tmp_path / "cat.trace"), Tensors())
    assert found["outcome"] == {"kind": "none", "text": None, "guesses": []}
    with pytest.raises(ConfigError, match=r"cat\.trace is a saved trace"):
        describe_run(
            RunRequest(model="cat.trace", text="", change="skip(decoder.0)"), memory, ignore
        )
    with pytest.raises(ConfigError, match=r"needs the model itself; cat\.trace is a saved trace"):
        _ = memory.reading(ReadingRequest(model="cat.trace", text=""), ignore).model
    with pytest.raises(ConfigError, match=r"needs the model itself"):
        memory.model("cat.trace")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A folder of an architecture that gf.load has no table for."""
    folder = tmp_path_factory.mktemp("foreign")
    save_foreign(folder)
    return folder


def test_a_model_that_transformers_alone_reads(foreign):
    memory = Memory()
    memory.locate({"neox": str(foreign)})
    found = describe_run(RunRequest(model="neox", text="the cat sat on"), memory, ignore)
    RunAnswer.model_validate(found)
    assert found["outcome"]["kind"] == "continuation"
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(foreign).eval()
    with torch.no_grad():
        best = model(torch.tensor([[1, 2, 3, 4]])).logits[0, -1].softmax(-1).topk(7)
    (guesses,) = found["outcome"]["guesses"]
    assert [each["token"] for each in guesses] == best.indices.tolist()
    assert [each["probability"] for each in guesses] == pytest.approx(
        best.values.tolist(), rel=1e-4
    )
    assert [each["name"] for each in found["page"]["runs"][0]["sites"]] == [
        "decoder.0.self",
        "decoder.1.self",
    ]
    with pytest.raises(ConfigError, match="own models alone; neox runs in transformers"):
        memory.model("neox")
    with pytest.raises(TraceError, match="at most 16 tokens with this model; got 20"):
        describe_run(RunRequest(model="neox", text="the " * 20), memory, ignore)
    with pytest.raises(TraceError, match="at least one token"):
        describe_run(RunRequest(model="neox", text=""), memory, ignore)


def test_a_folder_that_nothing_reads(foreign, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "nonsense"}))
    memory = Memory()
    memory.locate({"x": str(tmp_path), "neox": str(foreign)})
    with pytest.raises(CheckpointError, match="Neither glassformer nor transformers reads"):
        describe_run(RunRequest(model="x", text="the"), memory, ignore)
    monkeypatch.setattr(foreign_models, "find_spec", lambda _: None)
    with pytest.raises(CheckpointError, match=r"With transformers it may be readable: pip install"):
        describe_run(RunRequest(model="neox", text="the"), memory, ignore)
