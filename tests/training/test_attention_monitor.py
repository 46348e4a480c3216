"""The monitor measures what heads do, changes nothing, and reaches the metrics of a run."""

import json

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.layers.attention import SelfAttention
from glassformer.training.attention_monitor import AttentionMonitor
from training import small_runs
from training.small_runs import run


def test_readings_are_those_of_the_matrix() -> None:
    layer, x = SelfAttention(24, 4, n_kv_heads=2), torch.randn(2, 7, 24)
    mask = gf.Causal() & gf.Padding([7, 5], of="both")
    seen = []
    layer.core.register_forward_pre_hook(lambda _, operands: seen.append(operands))
    plain = layer(x, mask=mask)
    with AttentionMonitor(layer) as monitor:
        assert_same(layer(x, mask=mask), plain)
        layer(2 * x, mask=mask)  # only the first call counts
    layer(x)
    q, k = (t.detach().double() for t in seen[0][:2])
    weights = gf.attention_weights(q, k, mask=mask)
    expected = torch.special.entr(weights).sum(-1).sum((0, 2)) / 12  # queries that are no padding
    scores = q @ k.repeat_interleave(2, dim=1).mT * q.shape[-1] ** -0.5
    largest = scores.masked_fill(~mask.dense(7, 7, batch=2), -torch.inf).amax((0, 2, 3))
    readings = monitor.readings["core"]
    assert_close(readings.entropy.double(), expected, 1e-5)
    assert_close(readings.largest.double(), largest, 1e-5)
    assert monitor.summary() == {
        "lowest_entropy": float(readings.entropy.min()),
        "largest_score": float(readings.largest.max()),
    }
    assert len(layer.core._forward_pre_hooks) == 1


def test_without_attention_there_is_nothing_to_say() -> None:
    with AttentionMonitor(torch.nn.Linear(2, 2)) as monitor:
        assert monitor.summary() == {}


@pytest.mark.parametrize("asked", [True, False])
def test_every_evaluation_of_a_run_logs_it(tmp_path, asked: bool) -> None:
    recipe = small_runs.language(
        tmp_path, until={"steps": 2}, evaluate={"every_steps": 1, "attention": asked}
    )
    run(recipe, tmp_path / "run")
    text = (tmp_path / "run" / "metrics.jsonl").read_text()
    lines = [line for line in map(json.loads, text.splitlines()) if "valid_loss" in line]
    assert len(lines) == 2
    for line in lines:
        assert ("valid_lowest_entropy" in line) == ("valid_largest_score" in line) == asked
