"""Steps: what is sent is what the library computes with, and what `glassformer steps` prints."""

import base64
import inspect
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from closeness import assert_close
from glassformer.analysis.block_rows import read_block_row
from glassformer.cli.app import run_words
from glassformer.errors import TraceError
from glassformer.layers.feed_forward import ACTIVATIONS
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms import steps as room
from glassformer.workbench.rooms.step_sources import _LINES, find_line
from glassformer.workbench.rooms.steps import describe_steps, pack, pack_feed_forward
from glassformer.workbench.wire.requests import ReadingRequest
from glassformer.workbench.wire.steps import (
    FeedForwardAnswer,
    FeedForwardRequest,
    StepsAnswer,
    StepsRequest,
)

MEMORY = Memory()
TEXT = "The cat sat on the mat."
PLACES = [
    ("reader", "encoder.1.self", 1, 4),
    ("writer", "decoder.2.self", 3, 5),
    ("translator", "decoder.1.cross", 0, 3),
    ("translator", "decoder.1.self", 2, 6),
]


def ask(model: str, site: str, head: int, query: int, **extra: Any) -> dict[str, Any]:
    to = {"to": "fr"} if model == "translator" else {}
    asked = StepsRequest(
        **{"model": model, "text": TEXT, "site": site, "head": head, "query": query, **to, **extra}
    )
    found = describe_steps(asked, MEMORY, lambda _: None)
    StepsAnswer.model_validate(found)
    json.dumps(found, allow_nan=False)
    return found


def unpack(packed: dict[str, Any]) -> torch.Tensor:
    name = "float32" if "float32" in packed else "float64"
    form = "<f4" if name == "float32" else "<f8"
    values = np.frombuffer(base64.b64decode(packed[name]), form).astype("f8")
    return torch.tensor(values).reshape(packed["shape"])


def read(model: str, site: str) -> Any:
    to = "fr" if model == "translator" else None
    reading = MEMORY.reading(ReadingRequest(model=model, text=TEXT, to=to), lambda _: None)
    return reading, reading.trace[site]


@pytest.mark.parametrize(("model", "name", "head", "query"), PLACES)
def test_what_is_sent_gives_the_row(model: str, name: str, head: int, query: int) -> None:
    found, (reading, site) = ask(model, name, head, query), read(model, name)
    row = site.row(head, query)
    q, k, v = (unpack(found[each]) for each in "qkv")
    scores = (k @ q * found["scale"]).masked_fill(~torch.tensor(found["allowed"]), -torch.inf)
    assert_close(k @ q, row.dots, 1e-12)
    assert_close(scores, row.scores, 1e-12)
    assert_close(scores.softmax(-1) @ v, row.out, 1e-12)

    block = read_block_row(reading.model, reading.trace, name, head=head, query=query)
    w_q, w_o = unpack(found["w_q"]["weight"]), unpack(found["w_o"]["weight"])
    bias = 0 if found["w_q"]["bias"] is None else unpack(found["w_q"]["bias"])
    assert_close(w_q @ block.read + bias, unpack(found["projected"]), 1e-12)
    bias = 0 if found["w_o"]["bias"] is None else unpack(found["w_o"]["bias"])
    written = w_o @ unpack(found["outs"])[head] + unpack(found["rest"]) + bias
    assert_close(written, unpack(found["added"]), 2e-5)  # recorded in float32
    assert_close(unpack(found["x"]) + unpack(found["added"]), unpack(found["end"]), 1e-12)


@pytest.mark.parametrize(("model", "name", "head", "query"), PLACES[:3])
def test_the_feed_forward_is_recomputed_from_its_matrices(
    model: str, name: str, head: int, query: int
) -> None:
    network = ask(model, name, head, query)["feed_forward"]
    asked = {"model": model, "text": TEXT, "to": "fr" if model == "translator" else None}
    matrices = pack_feed_forward(
        FeedForwardRequest(**asked, site=name),
        MEMORY,
        lambda _: None,  # type: ignore[arg-type]
    )
    FeedForwardAnswer.model_validate(matrices)
    up, down = unpack(matrices["up"]["weight"]), unpack(matrices["down"]["weight"])
    biases = {
        side: 0 if matrices[side]["bias"] is None else unpack(matrices[side]["bias"])
        for side in ("up", "down")
    }
    hidden = up @ unpack(network["read"]) + biases["up"]
    act = ACTIVATIONS[network["activation"]]
    if network["gate"] is not None:
        gate, hidden = hidden.chunk(2)
        hidden = act(gate) * hidden
    else:
        hidden = act(hidden)
    assert_close(hidden, unpack(network["hidden"]), 1e-12)
    assert_close(down @ hidden + biases["down"], unpack(network["added"]), 1e-4)


def test_a_saved_trace_begins_at_the_dot_products(tmp_path: Path) -> None:
    reading, site = read("writer", "decoder.2.self")
    reading.trace.save(tmp_path / "cat.trace")
    memory = Memory()
    memory.locate({"cat": str(tmp_path / "cat.trace")})
    asked = StepsRequest(model="cat", text="", site="decoder.2.self", head=3, query=5)
    found = describe_steps(asked, memory, lambda _: None)
    StepsAnswer.model_validate(found)
    assert found["steps"][0]["id"] == "dots" and found["steps"][-1]["id"] == "sum"
    assert "x" not in found
    assert_close(unpack(found["k"]) @ unpack(found["q"]), site.row(3, 5).dots, 1e-12)
    with pytest.raises(TraceError, match="is not known"):
        pack_feed_forward(
            FeedForwardRequest(model="cat", text="", site="decoder.2.self"), memory, lambda _: None
        )


def test_self_attention_before_cross_attention_names_what_is_next() -> None:
    found = ask(*PLACES[3])
    assert found["feed_forward"] is None and found["next_site"] == "decoder.1.cross"
    assert found["steps"][-1]["id"] == "residual"


def test_the_numbers_are_those_that_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    said = ["steps", TEXT, "--model", "writer", "--site", "decoder.2.self", "--head", "3", "--json"]
    assert run_words(said) == 0
    printed = json.loads(capsys.readouterr().out)
    found = ask("writer", "decoder.2.self", 3, printed["query"])
    assert found["query_label"] == printed["token"] and found["key_labels"] == printed["keys"]
    q, k = unpack(found["q"]), unpack(found["k"])
    expected = torch.tensor(printed["row"]["dots"], dtype=torch.float64)
    assert_close(k @ q, expected, 1e-9)
    assert found["allowed"] == printed["row"]["allowed"]


def test_the_wrong_axis_of_softmax_is_that_of_the_queries() -> None:
    found, (_, site) = ask(*PLACES[2]), read("translator", "decoder.1.cross")
    row = site.row(0, 3)
    scores = torch.stack([site.row(0, i).scores for i in range(site.shape[2])])
    wrong = (row.scores - torch.tensor(found["column_lse"], dtype=torch.float64)).exp()
    assert_close(wrong, scores.softmax(0)[3], 1e-5)


def test_of_many_keys_the_strongest_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_KEYS", 5)
    monkeypatch.setattr(room, "STRONGEST", 3)
    found, (_, site) = ask(*PLACES[0]), read("reader", "encoder.1.self")
    row = site.row(1, 4)
    assert found["keys"] == sorted(row.weights.topk(3).indices.tolist())
    q, k, v = (unpack(found[each]) for each in "qkv")
    scores = k @ q * found["scale"]
    total = torch.cat((scores, torch.tensor([found["others"]["lse"]], dtype=torch.float64)))
    weights = total.softmax(-1)
    out = weights[:-1] @ v + weights[-1] * unpack(found["others"]["out"])
    assert_close(weights[:-1], row.weights[found["keys"]], 1e-12)
    assert_close(out, row.out, 1e-12)
    assert found["others"]["n"] == len(row.dots) - 3


def test_of_wide_matrices_the_first_columns_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_NUMBERS", 640)
    monkeypatch.setattr(room, "MOST_NEURONS", 640)
    found = ask(*PLACES[0])
    assert found["w_q"]["weight"]["shape"] == [64, 10] and found["w_q"]["columns"] == 256
    assert found["inputs"] is not None and not found["feed_forward"]["has_matrices"]
    with pytest.raises(TraceError, match=r"up to 640 numbers .* 896 × 256"):
        pack_feed_forward(
            FeedForwardRequest(model="reader", text=TEXT, site="encoder.1.self"),
            MEMORY,
            lambda _: None,
        )


def test_an_intervention_is_marked_at_its_step() -> None:
    found = ask(*PLACES[1], change="ablate(decoder.2.self, head=3)")
    changed = [step["id"] for step in found["steps"] if step["is_changed"]]
    assert changed
    assert not any(step["is_changed"] for step in ask(*PLACES[1])["steps"])


@pytest.mark.parametrize("variant", ["", "cross", "gated", "post", "interleaved"])
def test_source_lines_are_in_the_source(variant: str) -> None:
    for step in {name.partition(".")[0] for name in _LINES} | {"residual"}:
        file, line, code = find_line(step, variant)
        text = files("glassformer").joinpath(file.removeprefix("glassformer/")).read_text()
        assert text.splitlines()[line - 1].strip() == code and code


def test_each_piece_names_one_line() -> None:
    for function, piece in _LINES.values():
        assert inspect.getsource(inspect.unwrap(function)).count(piece) == 1, piece


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(TraceError, match="not all finite"):
        pack(torch.tensor([1.0, torch.nan]))


@pytest.mark.parametrize(
    ("change", "said"),
    [({"query": 99}, "has queries 0 … 8; got query=99"), ({"head": 9}, "has heads 0 … 3; got")],
)
def test_places_that_are_not_there_are_named(change: dict[str, int], said: str) -> None:
    with pytest.raises(TraceError, match=said):
        ask(**{"model": "reader", "site": "encoder.1.self", "head": 0, "query": 0, **change})
