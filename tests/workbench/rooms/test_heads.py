"""Maps, roles and effects: what the workbench shows is what the library computes."""

import base64
from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.analysis.traced_text import trace_text
from glassformer.errors import TraceError
from glassformer.render.traced_roles import find_roles
from glassformer.tracing import Run, Site, TracedText
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.heads import (
    draw_maps,
    measure_effects,
    name_roles,
    sketch_head,
)
from glassformer.workbench.wire.heads import (
    EffectsAnswer,
    EffectsRequest,
    MapsAnswer,
    MapsRequest,
    RolesAnswer,
    RolesRequest,
    SketchAnswer,
    SketchRequest,
)

READINGS: list[dict[str, Any]] = [
    {"model": "translator", "text": "The cat sat.", "to": "fr"},
    {"model": "writer", "text": "And God said unto Moses, Go"},
    {"model": "reader", "text": "The king sat upon his [MASK]."},
]


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


def read_cells(head: dict[str, Any], rows: int, cols: int) -> torch.Tensor:
    raw = bytearray(base64.b64decode(head["cells"]))
    return torch.frombuffer(raw, dtype=torch.uint8).view(rows, cols).float() * head["top"] / 255


@pytest.mark.parametrize("reading", READINGS)
def test_small_maps_are_the_weights(memory, reading):
    shares: list[float] = []
    found = draw_maps(MapsRequest(**reading, size=64), memory, shares.append)
    MapsAnswer.model_validate(found)
    model = gf.load(reading["model"])
    trace = trace_text(model, reading["text"], to=reading.get("to"))
    assert [each["site"] for each in found["sites"]] == list(range(len(trace)))
    assert shares[-1] == 1.0
    for drawn, site in zip(found["sites"], trace, strict=True):
        assert [each["head"] for each in drawn["heads"]] == list(site.head_numbers)
        for each in drawn["heads"]:
            weights = site.weights(head=each["head"])
            cells = read_cells(each, drawn["rows"], drawn["cols"])
            assert abs(each["top"] - float(weights.max())) < 1e-6
            assert (cells - weights).abs().max() <= each["top"] / 255 / 2 + 1e-6


@pytest.fixture(scope="module")
def long_trace(memory: Memory, tmp_path_factory: pytest.TempPathFactory) -> gf.Trace:
    """A text beyond what a browser computes; two heads share their keys, and one is biased."""
    torch.manual_seed(0)
    q, k = torch.randn(1, 4, 2500, 8), torch.randn(1, 2, 2500, 8)
    bias = gf.ALiBi(torch.tensor([0.5, 0.25, 0.01, 0.002]))
    site = Site(name="decoder.0.self", q=2 * q, k=k, v=k, mask=gf.Causal(), bias=bias)
    words = TracedText(torch.arange(2500)[None], [[f"t{i}" for i in range(2500)]])
    trace = gf.Trace([Run({site.name: site}, {"tokens": words})])
    path = tmp_path_factory.mktemp("long") / "long.trace"
    trace.save(path)
    memory.locate({"long": str(path)})
    return trace


@pytest.mark.parametrize("head", range(4))
def test_a_sketch_of_a_long_text_is_exact(memory, long_trace, head):
    asked = SketchRequest(model="long", text="", site=0, head=head)
    found = sketch_head(asked, memory, lambda _: None)
    SketchAnswer.model_validate(found)
    rows, cols, block = found["rows"], found["cols"], found["block"]
    assert found["queries"][0] == 0 and found["queries"][-1] == 2499 and rows > 30
    exact = long_trace["decoder.0.self"].weights(head=head, rows=found["queries"])
    values, tops = (
        torch.frombuffer(bytearray(base64.b64decode(found[name])), dtype=torch.float32)
        for name in ("values", "row_tops")
    )
    offsets = torch.frombuffer(bytearray(base64.b64decode(found["strongest"])), dtype=torch.int32)
    padded = torch.nn.functional.pad(exact, (0, cols * block - 2500), value=-1.0)
    blocks = padded.view(rows, cols, block)
    assert (values.view(rows, cols) - blocks.amax(-1)).abs().max() < 1e-6
    chosen = blocks.gather(-1, offsets.view(rows, cols, 1).long())[..., 0]
    assert (chosen - blocks.amax(-1)).abs().max() < 1e-6
    assert (tops - exact.amax(-1)).abs().max() < 1e-6
    assert found["top"] == pytest.approx(float(exact.max()), abs=1e-6)


def test_a_coarse_sketch_has_fewer_lines_of_the_same_numbers(memory, long_trace):
    asked = SketchRequest(model="long", text="", site=0, head=1)
    fine = sketch_head(asked, memory, lambda _: None)
    coarse = sketch_head(asked.model_copy(update={"coarse": True}), memory, lambda _: None)
    assert coarse["rows"] == fine["rows"] // 4
    assert coarse["queries"][0] == 0 and coarse["queries"][-1] == 2499
    assert (coarse["cols"], coarse["block"]) == (fine["cols"], fine["block"])
    exact = long_trace["decoder.0.self"].weights(head=1, rows=coarse["queries"])
    tops = torch.frombuffer(bytearray(base64.b64decode(coarse["row_tops"])), dtype=torch.float32)
    assert (tops - exact.amax(-1)).abs().max() < 1e-6


def test_maps_and_roles_of_a_long_text_look_at_some_queries(memory, long_trace):
    (drawn,) = draw_maps(MapsRequest(model="long", text=""), memory, lambda _: None)["sites"]
    site = long_trace["decoder.0.self"]
    rows = torch.linspace(0, 2499, 24, dtype=torch.float64).round().long().tolist()
    for each in drawn["heads"]:
        cells = read_cells(each, drawn["rows"], drawn["cols"])
        exact = site.weights(head=each["head"], rows=rows)
        assert (cells.amax(-1) - exact.amax(-1)).abs().max() <= each["top"] / 255 / 2 + 1e-6
    named = name_roles(RolesRequest(model="long", text=""), memory, lambda _: None)["heads"]
    assert [each["head"] for each in named] == [0, 1, 2, 3]
    whole = site.sharpness().tolist()  # of all queries; a sample is near it
    assert [each["sharpness"] for each in named] == pytest.approx(whole, abs=0.1)
    with pytest.raises(TraceError, match=r"heads 0 … 3; got head=4"):
        sketch_head(SketchRequest(model="long", text="", site=0, head=4), memory, lambda _: None)


def test_long_texts_are_pooled_to_the_largest_weight(memory):
    reading = {"model": "writer", "text": "And God said unto Moses, Go down. " * 9}
    found = draw_maps(MapsRequest(**reading, size=8, sites=[2, 0]), memory, lambda _: None)
    assert [each["site"] for each in found["sites"]] == [2, 0]
    site = list(trace_text(gf.load("writer"), reading["text"]))[2]
    L = site.shape[2]
    edges = [i * L // 8 for i in range(9)]
    drawn = found["sites"][0]
    assert (drawn["rows"], drawn["cols"]) == (8, 8) and L > 64
    for each in drawn["heads"]:
        weights, cells = site.weights(head=each["head"]), read_cells(each, 8, 8)
        for a in range(8):
            for b in range(8):
                block = weights[edges[a] : edges[a + 1], edges[b] : edges[b + 1]]
                assert abs(float(cells[a, b] - block.max())) <= each["top"] / 255 / 2 + 1e-6


def test_masked_cells_are_empty(memory):
    found = draw_maps(MapsRequest(**READINGS[1], size=64), memory, lambda _: None)
    for drawn in found["sites"]:
        for each in drawn["heads"]:
            cells = read_cells(each, drawn["rows"], drawn["cols"])
            assert not cells.triu(1).any() and float(cells[0, 0]) > 0.99


def test_a_site_that_is_not_there(memory):
    with pytest.raises(TraceError, match=r"sites 0 … 4; got site=5\."):
        draw_maps(MapsRequest(**READINGS[1], sites=[5]), memory, lambda _: None)


@pytest.mark.parametrize("reading", READINGS)
def test_roles_are_those_of_look(memory, reading):
    found = name_roles(RolesRequest(**reading), memory, lambda _: None)
    RolesAnswer.model_validate(found)
    trace = trace_text(gf.load(reading["model"]), reading["text"], to=reading.get("to"))
    expected = []
    for number, site in enumerate(trace):
        for head, role in enumerate(find_roles(trace, site, 0)):
            named = (None, None) if role is None else (role.role, pytest.approx(role.score))
            sharpness = pytest.approx(float(site.sharpness(head=head)), abs=1e-5)
            expected.append((number, head, *named, sharpness))
    keys = ("site", "head", "role", "score", "sharpness")
    assert [tuple(each[key] for key in keys) for each in found["heads"]] == expected
    assert any(each["role"] is None for each in found["heads"]) == (
        reading["model"] == "translator"
    )


@pytest.mark.parametrize("reading", READINGS[:2])
def test_effects_are_those_of_the_library(memory, reading):
    shares: list[float] = []
    found = measure_effects(EffectsRequest(**reading), memory, shares.append)
    EffectsAnswer.model_validate(found)
    assert shares[-1] == 1.0 and len(shares) > 1
    model = gf.load(reading["model"])
    trace = trace_text(model, reading["text"], to=reading.get("to"), residual=True)
    effects = gf.head_effects(trace)
    for each in found["heads"]:
        name = trace.names[each["site"]]
        assert each["divergence"] == pytest.approx(effects.of(name, each["head"]), abs=1e-6)
    assert len(found["heads"]) == len(effects.heads)
