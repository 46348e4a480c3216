"""Shapes: the boxes hold the numbers of `glassformer shapes` and `glassformer models`."""

from typing import Any

import pytest

from glassformer.errors import ConfigError
from glassformer.models import PRESETS, Config, Positions
from glassformer.models.description import describe
from glassformer.models.parameters import count_parameters
from glassformer.models.presets import build
from glassformer.models.shape_costs import measure_costs
from glassformer.models.shapes import shapes
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.shapes import describe_shapes
from glassformer.workbench.wire.shapes import ShapesAnswer, ShapesRequest

MEMORY = Memory()


def ask(model: str = "writer", **changes: Any) -> dict[str, Any]:
    asked = ShapesRequest(model=model, text="", **changes)
    found = describe_shapes(asked, MEMORY, lambda _: None)
    ShapesAnswer.model_validate(found)
    return found


def boxes(box: dict[str, Any]) -> list[dict[str, Any]]:
    return [box, *(inside for child in box["children"] for inside in boxes(child))]


@pytest.mark.parametrize("preset", ["gpt-2", "bert-base", "transformer-base", "llama-3.1-405b"])
def test_the_whole_costs_what_the_model_costs(preset: str) -> None:
    found, known = ask(preset=preset, batch=3, length=7), describe(preset)
    cost = found["model"]["cost"]
    assert cost["parameters"] == known.parameters == count_parameters(build(preset, device="meta"))
    assert found["cache_bytes_per_token"] == known.cache_bytes_per_token
    if known.family == "decoder":
        per_token = known.flops_per_token + 7 * known.attention_flops_per_key
        assert cost["flops"] == 3 * 7 * per_token


@pytest.mark.parametrize("model", ["writer", "reader", "translator"])
def test_two_traced_blocks_stand_for_all(model: str) -> None:
    config = MEMORY.model(model).config
    costs = measure_costs(shapes(config))
    cost = ask(model)["model"]["cost"]
    assert cost["parameters"] == sum(each.parameters for each in costs)
    assert cost["flops"] == sum(each.flops for each in costs)
    assert cost["bytes"] == sum(each.bytes for each in costs)


def test_parameters_shared_by_blocks_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(
        family="encoder", vocab_size=11, dim=6, n_layers=5, n_heads=3, max_len=16,
        positions=Positions(kind="relative", n_buckets=8),
    )  # fmt: skip
    monkeypatch.setitem(PRESETS, "sample", config)
    whole = ask(preset="sample")["model"]
    assert whole["cost"]["parameters"] == count_parameters(build(config, device="meta"))
    blocks = [n for box in boxes(whole) if box["kind"] == "block" for n in box["blocks"]]
    assert blocks == [0, 1, 2, 3, 4]


def test_steps_are_those_of_the_shape_trace() -> None:
    found = ask(batch=3, length=5)
    trace = shapes(MEMORY.model("writer").config, batch=3, length=5)
    expected = [step for section in trace.sections() for step in section.steps]
    steps = [box for box in boxes(found["model"]) if box["kind"] == "step"]
    assert [box["name"] for box in steps] == [step.operation for step in expected]
    for box, step in zip(steps, expected, strict=True):
        for name in ("inputs", "outputs", "parameters"):
            assert [(s["letters"], s["numbers"]) for s in box[name]] == [
                (list(s.letters), list(s.numbers)) for s in getattr(step, name)
            ]
    scores = next(box for box in steps if box["name"] == "scores")
    assert scores["product"] == {
        "left": ["B", "H", "L", "D"], "right": ["B", "K", "L", "D"],
        "out": ["B", "H", "L", "L"], "summed": "D",
    }  # fmt: skip
    assert not scores["is_held"] and scores["cost"]["flops"] == 2 * 3 * 4 * 5 * 5 * 64


def test_sizes_change_the_numbers_and_derived_sizes_follow() -> None:
    found = ask(dim=128, heads=8, layers=3, length=4096)
    assert found["sizes"] | {} == {
        "batch": 2, "length": 4096, "context": None, "dim": 128, "heads": 8, "kv_heads": 8,
        "head_dim": 16, "layers": 3, "hidden_dim": 640,
    }  # fmt: skip
    assert next(b for b in boxes(found["model"]) if b["kind"] == "block")["count"] == 3
    grouped = ask(preset="llama-3.2-1b", heads=16)["sizes"]
    assert (grouped["heads"], grouped["kv_heads"]) == (16, 8)
    assert ask("translator", layers=3)["model"]["children"][1]["children"][1]["count"] == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": 3}, "dim must be divisible by n_heads; got dim=256, n_heads=3"),
        ({"kv_heads": 3}, "n_heads must be a multiple of n_kv_heads; got n_heads=4, n_kv_heads=3"),
        ({"dim": 12, "heads": 4}, "head_dim=3"),
        ({"preset": "gpt-9"}, "got 'gpt-9'"),
    ],
)
def test_sizes_that_do_not_fit_are_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ask(**changes)
