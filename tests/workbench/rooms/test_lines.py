"""Python lines: each program runs by itself, and its numbers are those that the room shows."""

import base64
import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from glassformer.errors import GlassformerError
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import atlas, flow, shapes, steps, touch, writing
from glassformer.workbench.rooms.lines.atlas import write_region
from glassformer.workbench.rooms.lines.flow import write_flow
from glassformer.workbench.rooms.lines.shapes import write_shapes
from glassformer.workbench.rooms.lines.steps import write_steps
from glassformer.workbench.rooms.lines.touch import write_touch
from glassformer.workbench.rooms.lines.writing import write_writing
from glassformer.workbench.wire.atlas import TileRequest
from glassformer.workbench.wire.flow import (
    AttributeRequest,
    FlowRequest,
    LensRequest,
    WhyRequest,
)
from glassformer.workbench.wire.lines import (
    FlowLinesRequest,
    LinesAnswer,
    RegionRequest,
    StepsLinesRequest,
    WriteLinesRequest,
)
from glassformer.workbench.wire.shapes import ShapesRequest
from glassformer.workbench.wire.steps import StepsRequest
from glassformer.workbench.wire.touch import ChangeRequest
from glassformer.workbench.wire.writing import WriteRequest

CAT: dict[str, Any] = {"model": "translator", "text": "The cat sat on the mat.", "to": "fr"}
WESTON: dict[str, Any] = {"model": "writer", "text": "Mrs. \"Weston' smiled, and\n"}


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


def silent(_: float) -> None:
    pass


def run_lines(write: Callable[..., dict[str, Any]], asked: Any, memory: Memory) -> dict[str, Any]:
    """What the names of a program hold after it has run; it must print something."""
    lines = LinesAnswer.model_validate(write(asked, memory, silent)).lines
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(lines, "exported", "exec"), names)
    assert printed.getvalue().strip()
    return names


def unpack(packed: dict[str, Any]) -> list[float]:
    """The numbers of a tensor as it travels."""
    form = "float32" if packed.get("float32") else "float64"
    return np.frombuffer(base64.b64decode(packed[form]), form).tolist()


@pytest.mark.parametrize(
    ("reading", "site", "change", "second"),
    [
        (CAT, "decoder.1.cross", "ablate(decoder.0.self, head=1)", None),
        (WESTON, "decoder.1.self", "ablate(decoder.1.self, head=0, how=mean, of=$this)", None),
        (WESTON, "decoder.2.self", "steer(decoder.0.mlp, vector=$direction)", "The ships sank."),
        (CAT, "decoder.2.cross", "swap(decoder.1.self, bias=$alibi)", None),
    ],
)
def test_both_runs_of_touch(memory, reading, site, change, second):
    asked = ChangeRequest(
        **reading, change=change, second=second, site=site, head=2, query=3, key=1, position=3
    )
    shown = touch.compare_runs(asked, memory, silent)
    names = run_lines(write_touch, asked, memory)
    for row, name in zip(names["weights"], ("before", "after"), strict=True):
        assert row.tolist() == pytest.approx(shown["head"][name][3], abs=1e-5)
    for found, expected in zip(names["effect"].tokens, shown["tokens"], strict=True):
        assert found._asdict() == pytest.approx(expected, abs=1e-5)
    assert names["effect"].divergence.tolist() == pytest.approx(shown["divergence"], abs=1e-5)
    if change is not None:
        assert max(shown["divergence"]) > 1e-4


@pytest.mark.parametrize(
    ("reading", "site"), [(CAT, "decoder.2.cross"), (WESTON, "decoder.1.self")]
)
def test_the_stream_its_lens_and_its_contributions(memory, reading, site):
    place = {**reading, "site": site, "query": 2}
    names = run_lines(write_flow, FlowLinesRequest(**place, view="head", against=7), memory)
    shown = flow.measure_flow(FlowRequest(**place), memory, silent)
    assert names["norms"] == pytest.approx({b["name"]: b["norm"] for b in shown["borders"]})
    assert names["added"] == pytest.approx({p["name"]: p["norm"] for p in shown["inflows"]})
    said = flow.read_lens(LensRequest(**place), memory, silent)["borders"]
    for n, border in enumerate(said):
        expected = [each["probability"] for each in border["top"]]
        assert names["lens"].probabilities[n, 0].tolist() == pytest.approx(expected, abs=1e-5)
    asked = AttributeRequest(**place, by="head", against=7)
    shares = flow.attribute_token(asked, memory, silent)["shares"]
    found = {each.name: each.value for each in names["found"].shares}
    assert found == pytest.approx({s["name"]: s["value"] for s in shares}, abs=1e-4)


def test_the_stream_of_an_encoder_and_the_reasons(memory):
    mute = FlowLinesRequest(**CAT, site="encoder.1.self", query=1)
    assert "lens" not in run_lines(write_flow, mute, memory)
    place = {**WESTON, "site": "decoder.1.self", "query": 4, "top": 3, "depth": 1}
    found = run_lines(write_flow, FlowLinesRequest(**place, view="why"), memory)["found"]
    shown = flow.explain_token(WhyRequest(**place), memory, silent)
    assert found.token == shown["token"] and found.named == shown["named"]
    assert found.logit == pytest.approx(shown["logit"], abs=1e-4)
    judged = flow.judge_reasons(WhyRequest(**place), memory, silent)["numbers"]
    assert found.verdict.kept == pytest.approx(judged["kept"], abs=1e-4)


@pytest.mark.parametrize(
    "asked",
    [
        {**CAT, "beams": 4},
        {**CAT, "beams": 3, "kept": (40, 41), "max_new_tokens": 6},
        {**CAT, "temperature": 0.7, "top_k": 20, "seed": 3, "change": "ablate(decoder.0.mlp)"},
        {**WESTON, "temperature": 0.8, "top_p": 0.9, "seed": 1, "max_new_tokens": 8},
        {**WESTON, "temperature": 0.0, "kept": (40,), "max_new_tokens": 4},
        {**WESTON, "kept": (40, 50), "max_new_tokens": 2},
    ],
)
def test_a_written_text_and_its_choices(memory, asked):
    shown = writing.write_text(WriteRequest(**asked), memory, silent)
    names = run_lines(write_writing, WriteLinesRequest(**asked, at=1), memory)
    assert names["tokens"] == shown["tokens"]
    step = shown["steps"][1]
    assert names["before"].topk(10).indices.tolist() == [each["token"] for each in step["top"]]
    for choice in step["top"]:
        assert float(names["before"][choice["token"]]) == pytest.approx(choice["before"], abs=1e-5)
        if choice["after"] is not None and asked.get("temperature"):
            after = float(names["after"][choice["token"]])
            assert after == pytest.approx(choice["after"], abs=1e-4)


@pytest.mark.parametrize(
    ("reading", "site"), [(CAT, "decoder.2.cross"), (WESTON, "decoder.1.self")]
)
def test_the_steps_of_a_row_and_back(memory, reading, site):
    place = {**reading, "site": site, "head": 1, "query": 3}
    shown = steps.describe_steps(StepsRequest(**place), memory, silent)
    names = run_lines(write_steps, StepsLinesRequest(**place), memory)
    for name in ("q", "k", "v"):
        expected = unpack(shown[name])
        assert getattr(names["row"], name).flatten().tolist() == pytest.approx(expected, abs=1e-5)
    assert names["block"].end.tolist() == pytest.approx(unpack(shown["end"]), abs=1e-4)
    asked = StepsLinesRequest(**place, way="back", gradient=((2, 0.5),))
    back = run_lines(write_steps, asked, memory)
    row = back["row"]
    q = row.q.double().requires_grad_()
    weights = ((row.k.double() @ q) * row.scale).masked_fill(~row.allowed, -torch.inf).softmax(-1)
    (0.5 * (weights @ row.v.double())[2]).backward()
    assert q.grad is not None and (back["d_q"] - q.grad).abs().max() < 1e-12


@pytest.mark.parametrize(
    "asked",
    [
        {**CAT, "length": 13, "context": 9},
        {**WESTON, "dim": 96, "heads": 6, "layers": 7, "batch": 3},
        {**WESTON, "preset": "gpt-2", "length": 50, "kv_heads": 4},
    ],
)
def test_shapes_and_their_costs(memory, asked):
    request = ShapesRequest(**asked)
    names = run_lines(write_shapes, request, memory)
    shown = shapes.describe_shapes(request, memory, silent)
    cost = shown["model"]["cost"]
    assert {name: getattr(names["total"], name) for name in cost} == cost


def test_what_is_not_there_has_no_lines(memory):
    with pytest.raises(GlassformerError, match="99"):
        asked = StepsLinesRequest(**CAT, site="decoder.0.self", head=0, query=99)
        write_steps(asked, memory, silent)
    with pytest.raises(GlassformerError, match="head=9"):
        region = RegionRequest(**CAT, site=0, head=9, level=0, rows=(0, 1), cols=(0, 1))
        write_region(region, memory, silent)
    with pytest.raises(GlassformerError, match="7"):
        write_shapes(ShapesRequest(**CAT, heads=7), memory, silent)


def test_a_part_of_a_map(memory):
    place = {**WESTON, "text": "And God said unto Moses, go. " * 40, "site": 1, "head": 2}
    pooled = {"level": 1, "pool": "mean", "has_first": False}
    region = RegionRequest(**place, **pooled, rows=(3, 9), cols=(0, 4))
    names = run_lines(write_region, region, memory)
    tile = atlas.cut_tile(TileRequest(**place, **pooled, row=0, col=0), memory, silent)
    assert names["pyramid"].top_level >= 1 and names["values"].shape == (6, 4)
    head = atlas._recall_head(region, memory, silent).pyramid
    expected = head.tile(1, 0, 0, "mean", has_first=False).values[3:9, :4]
    assert (names["values"] - expected).abs().max() < 1e-6 and tile["rows"] > 9
    cells = RegionRequest(**place, level=0, rows=(5, 7), cols=(1, 4))
    values = run_lines(write_region, cells, memory)["values"]
    exact = list(memory.glance(cells, silent).trace)[1].weights(head=2)
    assert (values - exact[5:7, 1:4]).abs().max() < 1e-6
